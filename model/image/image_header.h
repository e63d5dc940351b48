// What an image file is, from its own bytes and before any pixel is decoded: a hostile or mistaken file costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::model {

enum class ImageFormat { kJpeg, kPng, kWebp, kHeic };

struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  std::int64_t width = 0;   // px, as stored: before the EXIF turn
  std::int64_t height = 0;  // px
  int orientation = 1;      // EXIF, 1 to 8; 1 where there is none or it is not readable

  // As it is to be seen: turned.
  std::int64_t seen_width() const { return orientation >= 5 ? height : width; }
  std::int64_t seen_height() const { return orientation >= 5 ? width : height; }
};

// Larger images are refused: the largest phone cameras make 200 Mpx, and a small file can claim any size.
inline constexpr std::int64_t kMaxPixels = 200'000'000;

// Classifiers by content, never by the name. `where` (usually the path) goes into errors. Throws DataError for an empty
// file, a format that is not JPEG, PNG, WebP or, where libheif is here, HEIC (naming it, with a way out), an animation,
// a file that ends early or is damaged as far as its structure shows (every PNG checksum is compared), no pixels, or
// more than kMaxPixels.
ImageInfo probe_image(std::string_view bytes, const std::string& where);

// "JPEG", "PNG", "WebP", "HEIC".
std::string format_name(ImageFormat format);

}  // namespace sdtune::model
