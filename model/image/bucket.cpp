#include "model/image/bucket.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// The best bucket with sides up to the limits, if the rule has any.
std::optional<ImageSize> best_bucket(std::int64_t width, std::int64_t height, const BucketRule& rule,
                                     const ImageSize& limit) {
  std::optional<ImageSize> best;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> best_rank;
  const std::int64_t first = rounded_up(rule.min_side, rule.step);
  for (std::int64_t w = first; w <= limit.width; w += rule.step) {
    for (std::int64_t h = first; h <= limit.height && w * h <= rule.resolution * rule.resolution; h += rule.step) {
      const std::tuple rank{std::min(width * h, height * w), -w * h, w};
      if (best && rank <= best_rank) continue;
      best = ImageSize{w, h};
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace

ImageSize choose_bucket(std::int64_t width, std::int64_t height, const BucketRule& rule) {
  if (width < 1 || height < 1) throw DataError("bucket", "a size is not positive");
  if (rule.step < 1 || rule.min_side < 1) throw ConfigError("bucket_reso_steps", "must be at least 1");
  std::optional<ImageSize> bucket;
  if (rule.no_upscale) {
    const ImageSize limit{std::min(width, rule.max_side), std::min(height, rule.max_side)};
    bucket = best_bucket(width, height, rule, limit);
  }
  if (!bucket) bucket = best_bucket(width, height, rule, {rule.max_side, rule.max_side});
  if (bucket) return *bucket;
  throw ConfigError("min_bucket_reso", "leaves no bucket (got " + std::to_string(rule.min_side) + " to " +
                                           std::to_string(rule.max_side) + " px in steps of " +
                                           std::to_string(rule.step) + "; allowed: at most resolution, " +
                                           std::to_string(rule.resolution) + ")");
}

bool is_enlarged(std::int64_t width, std::int64_t height, const ImageSize& bucket) {
  return bucket.width > width || bucket.height > height;
}

}  // namespace sdtune::model
