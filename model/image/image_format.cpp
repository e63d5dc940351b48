// By itself, because a build without image libraries (SDTUNE_IMAGE=OFF) names formats too.
#include "model/image/image_header.h"

namespace sdtune::model {

std::string format_name(ImageFormat format) {
  if (format == ImageFormat::kJpeg) return "JPEG";
  if (format == ImageFormat::kPng) return "PNG";
  return format == ImageFormat::kWebp ? "WebP" : "HEIC";
}

}  // namespace sdtune::model
