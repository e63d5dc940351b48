#include "model/image/image_header.h"

#include "model/base/error.h"
#include "model/image/foreign_format.h"
#include "model/image/heic_decode.h"
#include "model/image/jpeg_segments.h"
#include "model/image/orientation.h"
#include "model/image/png_chunks.h"
#include "model/image/webp_decode.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kAnimationHint = "save one frame of it as PNG";

std::string allowed_formats() {
  return std::string("allowed: JPEG, PNG, WebP") + (can_decode_heic() ? ", HEIC" : "");
}

ImageInfo probe_jpeg(std::string_view bytes, const std::string& where) {
  const JpegHeader header = read_jpeg_header(bytes, where);
  return {ImageFormat::kJpeg, header.width, header.height, exif_orientation(header.exif)};
}

ImageInfo probe_png(std::string_view bytes, const std::string& where) {
  const PngFile file = read_png_chunks(bytes, where);
  if (file.frames > 1) {
    throw DataError(where, "an animated PNG (" + std::to_string(file.frames) + " frames)", kAnimationHint);
  }
  return {ImageFormat::kPng, file.width, file.height, file.orientation};
}

ImageInfo probe_webp(std::string_view bytes, const std::string& where) {
  const WebpHeader file = read_webp_header(bytes, where);
  if (file.animated) throw DataError(where, "an animated WebP", kAnimationHint);
  return {ImageFormat::kWebp, file.width, file.height, exif_orientation(file.exif)};
}

// libheif turns the image, by boxes of the file and not by EXIF.
ImageInfo probe_heic(std::string_view bytes, const std::string& where) {
  const HeicSize size = read_heic_size(bytes, where);
  return {ImageFormat::kHeic, size.width, size.height, 1};
}

ImageInfo probe_any(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) throw DataError(where, "the file is empty", "copy it again");
  if (bytes.starts_with("\xff\xd8\xff"sv)) return probe_jpeg(bytes, where);
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return probe_png(bytes, where);
  if (bytes.size() >= 12 && bytes.starts_with("RIFF"sv) && bytes.substr(8, 4) == "WEBP"sv) {
    return probe_webp(bytes, where);
  }
  if (is_heic(bytes)) return probe_heic(bytes, where);
  const ForeignFormat foreign = name_foreign_format(bytes);
  if (!foreign.name.empty()) {
    throw DataError(where, "this is " + foreign.name + " (" + allowed_formats() + ")", foreign.hint);
  }
  throw DataError(where, "not an image (" + allowed_formats() + ")", "remove it, or copy it again if it should be one");
}

}  // namespace

ImageInfo probe_image(std::string_view bytes, const std::string& where) {
  const ImageInfo info = probe_any(bytes, where);
  const std::string size = std::to_string(info.width) + "x" + std::to_string(info.height);
  if (info.width < 1 || info.height < 1) throw DataError(where, "the image has no pixels (got " + size + ")");
  if (info.width > kMaxPixels / info.height) {
    throw DataError(
        where,
        "the image is too large (got " + size + "; allowed: " + std::to_string(kMaxPixels / 1'000'000) + " megapixels)",
        "make it smaller");
  }
  return info;
}

}  // namespace sdtune::model
