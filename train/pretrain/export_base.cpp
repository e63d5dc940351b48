#include "train/pretrain/export_base.h"

#include "model/base/model_note.h"

namespace sdtune::train::pretrain {
namespace {

// The embedded base's recipe: class pictures of its own, the text encoder too, and a rate far above Stable Diffusion's
// because the networks are small. Not yet measured on a base that is trained to the end.
constexpr const char* kDefaults =
    "with_prior_preservation: true\n"
    "num_class_images: 64\n"
    "train_text_encoder: true\n"
    "max_train_steps: 300\n"
    "train_batch_size: 4\n"
    "learning_rate: 2.0e-4\n";

}  // namespace

model::AutoencoderKL with_scaling_factor(const model::AutoencoderKL& vae, double factor) {
  model::VaeConfig config = vae->config();
  config.scaling_factor = factor;
  model::AutoencoderKL scaled(config);
  const auto from = vae->named_parameters();
  for (auto& item : scaled->named_parameters()) {
    torch::Tensor weight = item.value();
    weight.set_data(from[item.key()].detach());
    weight.set_requires_grad(false);
  }
  return scaled;
}

void export_base(FileSystem& files, const model::ModelBundle& bundle, const std::filesystem::path& folder) {
  model::save_bundle(files, bundle, folder, torch::kFloat16, [&](const std::filesystem::path& partial) {
    write_file_atomically(files, partial / "sdtune_defaults.yaml", kDefaults);
    write_model_note(files, {.trigger = "", .rendered_people = true}, partial);
  });
}

}  // namespace sdtune::train::pretrain
