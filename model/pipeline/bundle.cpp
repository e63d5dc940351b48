#include "model/pipeline/bundle.h"

#include <utility>

#include "model/base/error.h"
#include "model/files/hub_cache.h"
#include "model/nn/initial_values.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "model/weights/diffusers_folder.h"

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

ModelBundle empty_bundle(BundleConfigs configs, const fs::path& folder) {
  const WithoutInitialValues without_initial_values;
  ModelBundle bundle{.pipeline_class = configs.index.pipeline_class,
                     .tokenizer = std::move(configs.tokenizer),
                     .tokenizer_2 = std::move(configs.tokenizer_2),
                     .scheduler_class = configs.index.scheduler_class,
                     .scheduler_config = std::move(configs.scheduler),
                     .force_zeros_for_empty_prompt = configs.index.force_zeros_for_empty_prompt,
                     .folder = folder};
  bundle.text_encoder = CLIPTextModel(configs.text_encoder);
  if (configs.text_encoder_2) bundle.text_encoder_2 = CLIPTextModel(*configs.text_encoder_2);
  bundle.unet = UNet2DConditionModel(configs.unet);
  bundle.vae = AutoencoderKL(configs.vae);
  bundle.text_encoder->eval();
  if (bundle.text_encoder_2) bundle.text_encoder_2->eval();
  bundle.unet->eval();
  bundle.vae->eval();
  return bundle;
}

ModelBundle load_bundle(const fs::path& folder, torch::Dtype dtype, torch::Device device) {
  BundleConfigs configs = BundleConfigs::read(folder);
  std::vector<Problem> misfits = configs.find_misfits(folder);
  if (!misfits.empty()) throw WeightError(std::move(misfits));
  ModelBundle bundle = empty_bundle(std::move(configs), folder);
  load_part(*bundle.text_encoder, folder / "text_encoder", kTextEncoderPart, dtype, device);
  if (bundle.text_encoder_2) {
    load_part(*bundle.text_encoder_2, folder / "text_encoder_2", kTextEncoderPart, dtype, device);
  }
  load_part(*bundle.unet, folder / "unet", kUNetPart, dtype, device);
  load_part(*bundle.vae, folder / "vae", kVaePart, dtype, device);
  return bundle;
}

fs::path find_base(const std::string& name) {
  return find_model_folder(name);
}

}  // namespace sdtune::model
