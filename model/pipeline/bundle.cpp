#include "model/pipeline/bundle.h"

#include <utility>

#include "model/base/error.h"
#include "model/base/hub_cache.h"
#include "model/pipeline/bundle_configs.h"
#include "model/weights/load_module.h"

namespace sdtune::model {

namespace fs = std::filesystem;

torch::Dtype ModelBundle::dtype() const {
  return unet->parameters().front().scalar_type();
}

torch::Device ModelBundle::device() const {
  return unet->parameters().front().device();
}

void ModelBundle::to(torch::Dtype dtype, torch::Device device) {
  unet->to(device, dtype);
  vae->to(device, dtype);
  text_encoder->to(device, dtype);
  if (text_encoder_2) text_encoder_2->to(device, dtype);
}

ModelBundle load_bundle(const fs::path& folder, torch::Dtype dtype, torch::Device device) {
  BundleConfigs configs = BundleConfigs::read(folder);
  std::vector<Problem> misfits = configs.find_misfits(folder);
  if (!misfits.empty()) throw WeightError(std::move(misfits));
  ModelBundle bundle{.pipeline_class = configs.index.pipeline_class,
                     .tokenizer = std::move(configs.tokenizer),
                     .tokenizer_2 = std::move(configs.tokenizer_2),
                     .scheduler_class = configs.index.scheduler_class,
                     .scheduler_config = std::move(configs.scheduler),
                     .force_zeros_for_empty_prompt = configs.index.force_zeros_for_empty_prompt,
                     .folder = folder};
  bundle.text_encoder =
      load_module<CLIPTextModel>(configs.text_encoder, folder / "text_encoder", kTextEncoderPart, dtype, device);
  if (configs.text_encoder_2) {
    bundle.text_encoder_2 =
        load_module<CLIPTextModel>(*configs.text_encoder_2, folder / "text_encoder_2", kTextEncoderPart, dtype, device);
  }
  bundle.unet = load_module<UNet2DConditionModel>(configs.unet, folder / "unet", kUNetPart, dtype, device);
  bundle.vae = load_module<AutoencoderKL>(configs.vae, folder / "vae", kVaePart, dtype, device);
  return bundle;
}

fs::path find_base(const std::string& name) {
  return find_model_folder(name);
}

}  // namespace sdtune::model
