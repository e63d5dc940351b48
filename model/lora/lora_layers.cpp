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

// '*' stands for any run of characters. Where a letter differs only the last '*' takes one more: a LoRA file holds
// patterns too, and tries of every '*' would have no end.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, begin = 0;  // of the text: what is compared now, and where the part behind the last '*' began
  std::size_t place = 0, behind_star = std::string_view::npos;  // the same of the pattern
  while (at < text.size()) {
    if (place < pattern.size() && pattern[place] == '*') {
      behind_star = ++place;
      begin = at;
    } else if (place < pattern.size() && pattern[place] == text[at]) {
      ++place;
      ++at;
    } else if (behind_star != std::string_view::npos) {
      place = behind_star;
      at = ++begin;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', place) == std::string_view::npos;
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
