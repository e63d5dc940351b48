// Aspect-ratio buckets: photos keep their shape, and those of one shape share a batch. Integer arithmetic throughout.
#pragma once

#include <cstdint>

namespace sdtune::model {

// Named as kohya's options are (min_bucket_reso, ...). Sizes in px.
struct BucketRule {
  std::int64_t resolution = 512;  // a bucket has at most resolution x resolution pixels
  std::int64_t min_side = 256;
  std::int64_t max_side = 1024;
  std::int64_t step = 64;  // sides are multiples of it
  bool no_upscale = true;  // a photo is never enlarged, unless it is smaller than min_side
};

struct ImageSize {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px

  bool operator==(const ImageSize&) const = default;
};

// The bucket W x H in which all of the photo, uncropped, would be shown largest: of all multiples of `step` between
// min_side and max_side with W * H <= resolution^2 (and, with no_upscale, W <= width and H <= height) the one with the
// largest min(width * H, height * W); of equals the one with fewer pixels, which crops less, then the wider one.
// Where no_upscale leaves none, the photo is too small and is enlarged after all (see is_enlarged). Throws ConfigError
// when the rule itself allows no bucket.
ImageSize choose_bucket(std::int64_t width, std::int64_t height, const BucketRule& rule);

// Whether a photo must be enlarged to cover its bucket.
bool is_enlarged(std::int64_t width, std::int64_t height, const ImageSize& bucket);

}  // namespace sdtune::model
