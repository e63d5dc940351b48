#include "model/image/image_read.h"

#include <algorithm>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/image/heic_decode.h"
#include "model/image/jpeg_decode.h"
#include "model/image/orientation.h"
#include "model/image/png_decode.h"
#include "model/image/resample.h"
#include "model/image/webp_decode.h"

namespace sdtune::model {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::uint8_t on_white(int value, int alpha) {
  return static_cast<std::uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

Image on_white(const DecodedPixels& pixels) {
  Image image{pixels.width, pixels.height, {}};
  image.rgb.reserve(pixels.rgba.size() / 4 * 3);
  for (std::size_t i = 0; i < pixels.rgba.size(); i += 4) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      image.rgb.push_back(on_white(pixels.rgba[i + channel], pixels.rgba[i + 3]));
    }
  }
  return image;
}

Image alpha_of(const DecodedPixels& pixels) {
  Image alpha{pixels.width, pixels.height, {}};
  alpha.rgb.reserve(pixels.rgba.size() / 4 * 3);
  for (std::size_t i = 3; i < pixels.rgba.size(); i += 4) alpha.rgb.insert(alpha.rgb.end(), 3, pixels.rgba[i]);
  return alpha;
}

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

Image grey_on_black(const DecodedPixels& pixels) {
  Image grey{pixels.width, pixels.height, {}};
  grey.rgb.reserve(pixels.rgba.size() / 4 * 3);
  for (std::size_t i = 0; i < pixels.rgba.size(); i += 4) {
    const int value = (luma(&pixels.rgba[i]) * pixels.rgba[i + 3] + 127) / 255;
    grey.rgb.insert(grey.rgb.end(), 3, static_cast<std::uint8_t>(value));
  }
  return grey;
}

Image grey_of(Image image) {
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    image.rgb[i] = image.rgb[i + 1] = image.rgb[i + 2] = luma(&image.rgb[i]);
  }
  return image;
}

// Of a format with transparency; the chunks of a PNG were walked by probe_image.
DecodedPixels decode_pixels(std::string_view bytes, ImageFormat format, const std::string& where) {
  if (format == ImageFormat::kPng) return decode_png(bytes, where);
  if (format == ImageFormat::kHeic) return decode_heic(bytes, where);
  return decode_webp(bytes, where);
}

// The pixels before the EXIF turn; `lay` makes an image of those with transparency.
template <typename Lay>
Image decode_stored(std::string_view bytes, const ImageInfo& info, const std::string& where, const Lay& lay) {
  Image stored =
      info.format == ImageFormat::kJpeg ? decode_jpeg(bytes, where) : lay(decode_pixels(bytes, info.format, where));
  if (stored.width != info.width || stored.height != info.height) {
    throw DataError(where, "damaged " + format_name(info.format) + ": its header and its pixels differ in size");
  }
  return stored;
}

Image decode_stored(std::string_view bytes, const ImageInfo& info, const std::string& where) {
  return decode_stored(bytes, info, where, [](const DecodedPixels& pixels) { return on_white(pixels); });
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& where) {
  const ImageInfo info = probe_image(bytes, where);
  return oriented(decode_stored(bytes, info, where), info.orientation);
}

ImageInfo verify_image(std::string_view bytes, const std::string& where) {
  const ImageInfo info = probe_image(bytes, where);
  if (info.format == ImageFormat::kJpeg) {
    decode_jpeg(bytes, where, 8);
  } else {
    decode_stored(bytes, info, where);
  }
  return info;
}

ImageReading::ImageReading(std::string_view bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)), info_(probe_image(bytes_, where_)) {}

const Image& ImageReading::stored() {
  if (!stored_) stored_ = decode_stored(bytes_, info_, where_);
  return *stored_;
}

Image ImageReading::preview(std::int64_t longest) {
  const std::int64_t side = std::max(info_.width, info_.height);
  unsigned reduction = 1;
  // A little less than asked for is seen as well, and takes half the time.
  while (info_.format == ImageFormat::kJpeg && reduction < 8 && 4 * side / (2 * reduction) >= 3 * longest) {
    reduction *= 2;
  }
  Image seen = reduction > 1 ? decode_jpeg(bytes_, where_, reduction) : stored();
  const std::int64_t decoded = std::max(seen.width, seen.height);
  if (decoded > longest) {
    const auto scaled = [&](std::int64_t extent) { return std::max<std::int64_t>(1, extent * longest / decoded); };
    seen = resized(seen, scaled(seen.width), scaled(seen.height), Filter::kBilinear);
  }
  return oriented(std::move(seen), info_.orientation);
}

Image ImageReading::whole() {
  stored();
  Image image = oriented(std::move(*stored_), info_.orientation);
  stored_.reset();
  return image;
}

Preview preview_image(std::string_view bytes, const std::string& where, std::int64_t longest) {
  ImageReading reading(bytes, where);
  Image image = reading.preview(longest);
  return {reading.info(), std::move(image)};
}

Image read_grey_on_black(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, kMaxFileBytes);
  const ImageInfo info = probe_image(bytes, path.string());
  const auto lay = [](const DecodedPixels& pixels) { return grey_on_black(pixels); };
  return grey_of(oriented(decode_stored(bytes, info, path.string(), lay), info.orientation));
}

std::optional<Image> read_alpha(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, kMaxFileBytes);
  const ImageInfo info = probe_image(bytes, path.string());
  if (info.format == ImageFormat::kJpeg) return std::nullopt;
  const DecodedPixels pixels = decode_pixels(bytes, info.format, path.string());
  return pixels.has_alpha ? std::optional(oriented(alpha_of(pixels), info.orientation)) : std::nullopt;
}

Image read_image(const std::filesystem::path& path) {
  return decode_image(read_file(path, kMaxFileBytes), path.string());
}

}  // namespace sdtune::model
