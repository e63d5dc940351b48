#include "train/parameters/trainable_parameters.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/lora/lora_layers.h"

namespace sdtune::train {

namespace {

void append_parameters(std::vector<ModuleParameter>& list, const std::string& component,
                       const torch::nn::Module& module, std::int64_t group) {
  for (const auto& parameter : module.named_parameters()) {
    list.push_back({component + "." + parameter.key(), parameter.value(), group});
  }
}

// Of the components that are trained, text encoders first.
std::vector<ModuleParameter> all_of_components(const model::ModelBundle& bundle, bool train_text_encoder) {
  std::vector<ModuleParameter> list;
  if (train_text_encoder) append_parameters(list, "text_encoder", *bundle.text_encoder, kTextGroup);
  if (train_text_encoder && bundle.is_xl())
    append_parameters(list, "text_encoder_2", *bundle.text_encoder_2, kTextGroup);
  append_parameters(list, "unet", *bundle.unet, kUnetGroup);
  return list;
}

bool starts_with_one(const std::string& name, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const std::string& start) { return name.starts_with(start); });
}

// "unet.conv_in" of "unet.conv_in.weight".
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

bool is_selected(const std::string& parameter, const std::vector<std::string>& layers) {
  return layers.empty() || std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
           return model::selects_layer(layer, layer_of(parameter));
         });
}

// What was asked for and is not there: a layer of the base, or anything to train in a component.
std::vector<Problem> problems_of(const std::vector<ModuleParameter>& all, const std::vector<ModuleParameter>& selected,
                                 const std::vector<std::string>& components, const std::vector<std::string>& layers) {
  std::vector<Problem> problems;
  for (const std::string& layer : layers) {
    const bool is_there = std::any_of(all.begin(), all.end(), [&](const ModuleParameter& parameter) {
      return model::selects_layer(layer, layer_of(parameter.name));
    });
    if (!is_there)
      problems.push_back({"trainable_layers", "no trained part of the base has a layer called " + layer,
                          "for example to_q, to_k, to_v, to_out.0; those of text encoders with train_text_encoder"});
  }
  for (const std::string& component : components) {
    const bool is_trained = std::any_of(selected.begin(), selected.end(), [&](const ModuleParameter& parameter) {
      return parameter.name.starts_with(component + ".");
    });
    if (!is_trained && problems.empty())
      problems.push_back({"trainable_layers", "selects no layer of " + component,
                          component == "unet" ? "for example to_q, to_k, to_v, to_out.0"
                                              : "add for example q_proj, or leave train_text_encoder out"});
  }
  return problems;
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

std::vector<ModuleParameter> trainable_parameters(const model::ModelBundle& bundle, bool train_text_encoder,
                                                  const std::vector<std::string>& layers) {
  const std::vector<ModuleParameter> all = all_of_components(bundle, train_text_encoder);
  const std::vector<std::string> unused = unused_parameters(bundle);
  std::vector<ModuleParameter> selected;
  for (const ModuleParameter& parameter : all) {
    if (!starts_with_one(parameter.name, unused) && is_selected(parameter.name, layers)) selected.push_back(parameter);
  }
  const std::vector<Problem> problems =
      problems_of(all, selected, trainable_components(bundle, train_text_encoder), layers);
  if (!problems.empty()) throw ConfigError(problems);
  return selected;
}

std::vector<ModuleParameter> fixed_parameters(const model::ModelBundle& bundle, bool train_text_encoder,
                                              const std::vector<std::string>& layers) {
  const std::vector<std::string> unused = unused_parameters(bundle);
  std::vector<ModuleParameter> fixed;
  for (const ModuleParameter& parameter : all_of_components(bundle, train_text_encoder)) {
    if (starts_with_one(parameter.name, unused) || !is_selected(parameter.name, layers)) fixed.push_back(parameter);
  }
  return fixed;
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
