#include "train/portrait/pretrain/export_base.h"

#include <utility>

#include "model/files/install_paths.h"
#include "model/files/model_note.h"

namespace sdtune::train::pretrain {
namespace {

// Method -> the name of its defaults in a base.
constexpr std::pair<const char*, const char*> kDefaults[] = {{"full", "sdtune_defaults.yaml"},
                                                             {"lora", "sdtune_defaults_lora.yaml"}};

void copy_defaults(FileSystem& files, const std::string& preset, const std::filesystem::path& folder) {
  for (const auto& [method, name] : kDefaults) {
    const std::filesystem::path file = find_shared_file("configs/" + std::string(method) + "_" + preset + ".yaml");
    if (!file.empty()) write_file_atomically(files, folder / name, read_file(file));
  }
}

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

void export_base(FileSystem& files, const model::ModelBundle& bundle, const std::string& preset,
                 const std::filesystem::path& folder) {
  const auto add = [&](const std::filesystem::path& partial) {
    copy_defaults(files, preset, partial);
    write_model_note(files, {.trigger = "", .rendered_people = true}, partial);
  };
  model::save_bundle(files, bundle, folder, torch::kFloat16, {.add = add});
}

}  // namespace sdtune::train::pretrain
