#include "train/run/picture_shape.h"

#include "model/base/json.h"
#include "model/unet/unet_config.h"
#include "model/vae/vae_config.h"

namespace sdtune::train {

PictureShape picture_shape(const std::filesystem::path& base) {
  const std::filesystem::path vae_file = base / "vae" / "config.json", unet_file = base / "unet" / "config.json";
  const std::int64_t factor = model::VaeConfig::from_json(read_json(vae_file), vae_file.string()).downscale();
  const model::UNetConfig unet = model::UNetConfig::from_json(read_json(unet_file), unet_file.string());
  return {unet.sample_size * factor, factor << (unet.num_levels() - 1)};
}

}  // namespace sdtune::train
