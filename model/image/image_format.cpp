// By itself, because a build without picture libraries (SDTUNE_IMAGE=OFF) names formats too.
#include "model/image/image_probe.h"

namespace sdtune::model {

std::string format_name(ImageFormat format) {
  if (format == ImageFormat::kJpeg) return "JPEG";
  return format == ImageFormat::kPng ? "PNG" : "WebP";
}

}  // namespace sdtune::model
