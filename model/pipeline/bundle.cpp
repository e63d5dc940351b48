#include "model/pipeline/bundle.h"

#include <utility>

#include "model/base/error.h"
#include "model/base/hub_cache.h"
#include "model/nn/initial_values.h"
#include "model/pipeline/bundle_configs.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// Where a bundle's parts are to live.
struct Target {
  torch::Dtype dtype;
  torch::Device device;
};

template <typename Part, typename Config>
Part load_module(const Config& config, const fs::path& folder, const PartKind& kind, const Target& target) {
  Part part = nullptr;
  {
    const WithoutInitialValues every_weight_is_loaded;
    part = Part(config);
  }
  load_part(*part, folder, kind, target.dtype, target.device);
  part->eval();
  return part;
}

}  // namespace

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
  const Target target{dtype, device};
  ModelBundle bundle{.pipeline_class = configs.index.pipeline_class,
                     .tokenizer = std::move(configs.tokenizer),
                     .tokenizer_2 = std::move(configs.tokenizer_2),
                     .scheduler_class = configs.index.scheduler_class,
                     .scheduler_config = std::move(configs.scheduler),
                     .force_zeros_for_empty_prompt = configs.index.force_zeros_for_empty_prompt,
                     .folder = folder};
  bundle.text_encoder =
      load_module<CLIPTextModel>(configs.text_encoder, folder / "text_encoder", kTextEncoderPart, target);
  if (configs.text_encoder_2) {
    bundle.text_encoder_2 =
        load_module<CLIPTextModel>(*configs.text_encoder_2, folder / "text_encoder_2", kTextEncoderPart, target);
  }
  bundle.unet = load_module<UNet2DConditionModel>(configs.unet, folder / "unet", kUNetPart, target);
  bundle.vae = load_module<AutoencoderKL>(configs.vae, folder / "vae", kVaePart, target);
  return bundle;
}

fs::path find_base(const std::string& name) {
  return find_model_folder(name);
}

}  // namespace sdtune::model
