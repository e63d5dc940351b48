#include "model/weights/key_map.h"

#include <array>
#include <string_view>
#include <utility>

namespace sdtune::model {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOldVaeAttention = {
    {{".query.", ".to_q."}, {".key.", ".to_k."}, {".value.", ".to_v."}, {".proj_attn.", ".to_out.0."}}};

// Parts of a module path, so that "_orig_mod." is found inside it too.
void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

std::string vae_key(std::string key) {
  if (key.find(".attentions.") == std::string::npos) return key;
  for (const auto& [old_name, name] : kOldVaeAttention) {
    const std::size_t at = key.find(old_name);
    if (at != std::string::npos) key.replace(at, old_name.size(), name);
  }
  return key;
}

std::string text_encoder_key(std::string key) {
  if (key.ends_with("position_ids") || key == "logit_scale") return {};
  for (const std::string_view part : {"embeddings.", "encoder.", "final_layer_norm."}) {
    if (key.starts_with(part)) return "text_model." + key;
  }
  return key;
}

}  // namespace

std::string our_key(KeyFamily family, const std::string& stored) {
  std::string key = stored;
  remove_all(key, "_orig_mod.");
  if (key.starts_with("module.")) key.erase(0, std::string_view("module.").size());
  switch (family) {
    case KeyFamily::kUNet:
      return key;
    case KeyFamily::kVae:
      return vae_key(std::move(key));
    case KeyFamily::kTextEncoder:
      return text_encoder_key(std::move(key));
  }
  return key;
}

torch::Tensor fit_projection(const torch::Tensor& stored, torch::IntArrayRef shape) {
  const bool was_convolution = stored.dim() == 4 && shape.size() == 2 && stored.size(2) == 1 && stored.size(3) == 1;
  if (was_convolution) return stored.flatten(1);
  const bool is_convolution = stored.dim() == 2 && shape.size() == 4 && shape[2] == 1 && shape[3] == 1;
  return is_convolution ? stored.unsqueeze(2).unsqueeze(3) : stored;
}

}  // namespace sdtune::model
