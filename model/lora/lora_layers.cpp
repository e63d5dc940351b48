#include "model/lora/lora_layers.h"

#include "model/nn/linear.h"

namespace sdtune::model {
namespace {

void append(std::vector<LoraLayer>& list, const std::string& component, const torch::nn::Module& module) {
  for (const auto& entry : module.named_modules(component)) {
    torch::nn::Module* part = entry.value().get();
    auto* layer = dynamic_cast<LowRankLayer*>(part);
    if (layer == nullptr) continue;
    const torch::Tensor weight = layer->layer_weight();
    list.push_back({entry.key(), layer, weight.dim() == 4 && weight.size(2) > 1});
  }
}

// '*' stands for any run of characters.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skipped = 0; skipped <= text.size(); ++skipped) {
      if (matches(pattern.substr(1), text.substr(skipped))) return true;
    }
    return false;
  }
  return !text.empty() && pattern.front() == text.front() && matches(pattern.substr(1), text.substr(1));
}

}  // namespace

std::vector<LoraLayer> lora_layers(const ModelBundle& bundle) {
  std::vector<LoraLayer> list;
  append(list, "text_encoder", *bundle.text_encoder);
  if (bundle.is_xl()) append(list, "text_encoder_2", *bundle.text_encoder_2);
  append(list, "unet", *bundle.unet);
  return list;
}

bool selects_layer(const std::string& pattern, const std::string& path) {
  return matches(pattern, path) || matches("*." + pattern, path);
}

}  // namespace sdtune::model
