#include "model/weights/model_parts.h"

#include "model/base/json.h"
#include "model/files/json_file.h"
#include "model/weights/load_module.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

template <typename Module, typename Config>
Module load(const fs::path& part, const PartKind& kind, torch::Dtype dtype, torch::Device device) {
  const fs::path path = part / "config.json";
  const Config config = Config::from_json(read_json(path), path.string());
  return load_module<Module>(config, part, kind, dtype, device);
}

}  // namespace

UNet2DConditionModel load_unet(const fs::path& part, torch::Dtype dtype, torch::Device device) {
  return load<UNet2DConditionModel, UNetConfig>(part, kUNetPart, dtype, device);
}

AutoencoderKL load_vae(const fs::path& part, torch::Dtype dtype, torch::Device device) {
  return load<AutoencoderKL, VaeConfig>(part, kVaePart, dtype, device);
}

CLIPTextModel load_text_encoder(const fs::path& part, torch::Dtype dtype, torch::Device device) {
  return load<CLIPTextModel, ClipTextConfig>(part, kTextEncoderPart, dtype, device);
}

}  // namespace sdtune::model
