#include "model/pipeline/image_shape.h"

#include "model/base/json.h"
#include "model/files/json_file.h"

namespace sdtune::model {

ImageShape image_shape(const UNetConfig& unet, const VaeConfig& vae) {
  const std::int64_t factor = vae.downscale();
  return {unet.sample_size * factor, factor << (unet.num_levels() - 1)};
}

ImageShape read_image_shape(const std::filesystem::path& folder) {
  const std::filesystem::path unet = folder / "unet" / "config.json", vae = folder / "vae" / "config.json";
  return image_shape(UNetConfig::from_json(read_json(unet), unet.string()),
                     VaeConfig::from_json(read_json(vae), vae.string()));
}

}  // namespace sdtune::model
