#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {

namespace {

void append(std::vector<ModuleParameter>& list, const std::string& component, const torch::nn::Module& module,
            std::int64_t group, const std::vector<std::string>& unused = {}) {
  for (const auto& parameter : module.named_parameters()) {
    const std::string name = component + "." + parameter.key();
    const bool is_unused =
        std::any_of(unused.begin(), unused.end(), [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (!is_unused) list.push_back({name, parameter.value(), group});
  }
}

std::vector<torch::Tensor> all_parameters(const model::ModelBundle& bundle) {
  std::vector<torch::Tensor> all;
  const auto add = [&all](const auto& holder) {
    if (holder.is_empty()) return;
    const std::vector<torch::Tensor> parameters = holder->parameters();
    all.insert(all.end(), parameters.begin(), parameters.end());
  };
  add(bundle.text_encoder);
  add(bundle.text_encoder_2);
  add(bundle.unet);
  add(bundle.vae);
  return all;
}

}  // namespace

std::vector<std::string> trainable_components(const model::ModelBundle& bundle, bool train_text_encoder) {
  std::vector<std::string> components = {"unet"};
  if (train_text_encoder) components.push_back("text_encoder");
  if (train_text_encoder && bundle.is_xl()) components.push_back("text_encoder_2");
  return components;
}

std::vector<std::string> unused_parameters(const model::ModelBundle& bundle) {
  if (!bundle.is_xl()) return {};
  const std::int64_t last = bundle.text_encoder->config().num_hidden_layers - 1;
  return {"text_encoder.text_model.encoder.layers." + std::to_string(last) + ".",
          "text_encoder.text_model.final_layer_norm."};
}

std::vector<ModuleParameter> trainable_parameters(const model::ModelBundle& bundle, bool train_text_encoder) {
  std::vector<ModuleParameter> list;
  if (train_text_encoder) {
    append(list, "text_encoder", *bundle.text_encoder, kTextGroup, unused_parameters(bundle));
    if (bundle.is_xl()) append(list, "text_encoder_2", *bundle.text_encoder_2, kTextGroup);
  }
  append(list, "unet", *bundle.unet, kUnetGroup);
  return list;
}

void freeze_all_but(const model::ModelBundle& bundle, const std::vector<ModuleParameter>& trained) {
  for (torch::Tensor& parameter : all_parameters(bundle)) parameter.set_requires_grad(false);
  for (const ModuleParameter& parameter : trained) parameter.weight.set_requires_grad(true);
}

std::int64_t count_parameters(const model::ModelBundle& bundle) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : all_parameters(bundle)) count += parameter.numel();
  return count;
}

}  // namespace sdtune::train
