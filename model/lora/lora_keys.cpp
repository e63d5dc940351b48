#include "model/lora/lora_keys.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "model/base/error.h"
#include "model/lora/lora_layers.h"
#include "model/lora/lycoris.h"
#include "model/single_file/ldm_names.h"

namespace sdtune::model {
namespace {

using std::string_view_literals::operator""sv;

struct Ending {
  std::string_view text;
  LoraRole role;
};

// The longest first where one ends in another.
constexpr std::array kEndings = {Ending{".lora_linear_layer.down.weight", LoraRole::kDown},
                                 Ending{".lora_linear_layer.up.weight", LoraRole::kUp},
                                 Ending{".lora.down.weight", LoraRole::kDown},
                                 Ending{".lora.up.weight", LoraRole::kUp},
                                 Ending{".lora_down.weight", LoraRole::kDown},
                                 Ending{".lora_up.weight", LoraRole::kUp},
                                 Ending{".lora_A.weight", LoraRole::kDown},
                                 Ending{".lora_B.weight", LoraRole::kUp},
                                 Ending{".alpha", LoraRole::kAlpha}};

// Parts of names; one with a dot before it is how a name ends.
constexpr std::array kOtherMethods = {
    std::pair{"dora_scale"sv, "DoRA"sv},
    std::pair{"lora_magnitude_vector"sv, "DoRA"sv},
    std::pair{"oft_blocks"sv, "OFT"sv},
    std::pair{"oft_diag"sv, "OFT"sv},
    std::pair{"boft_R"sv, "BOFT"sv},
    std::pair{"boft_s"sv, "BOFT"sv},
    std::pair{"oft_R"sv, "OFT"sv},
    std::pair{"ia3_l"sv, "IA3"sv},
    std::pair{".on_input"sv, "IA3"sv},
    std::pair{".a1.weight"sv, "GLoRA"sv},
    std::pair{".diff"sv, "full LyCORIS"sv},
    std::pair{".diff_b"sv, "full LyCORIS"sv},
    std::pair{".w_norm"sv, "LyCORIS with norms"sv},
    std::pair{".b_norm"sv, "LyCORIS with norms"sv},
    std::pair{"bundle_emb"sv, "LoRA with embeddings"sv},  // OneTrainer's
};

constexpr const char* kUnetPrefix = "lora_unet_";
constexpr const char* kTextPrefix = "lora_te";
constexpr const char* kClipPrefix = "text_model.";
// ComfyUI's node that saves a LoRA: LDM names with dots, and CLIP L, H (of SD 2) and G by transformers' names.
constexpr const char* kComfyUnetPrefix = "diffusion_model.";
constexpr const char* kComfyTextPrefix = "text_encoders.";

std::string with_underscores(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part)) text.erase(at, part.size());
}

// PEFT may put an adapter's name before the end: lora_A.default.weight.
std::string without_adapter_name(const std::string& name) {
  if (!name.ends_with(".weight")) return name;
  for (const char* matrix : {".lora_A.", ".lora_B."}) {
    const std::size_t at = name.find(matrix);
    if (at != std::string::npos) return name.substr(0, at) + std::string(matrix) + "weight";
  }
  return name;
}

// Attention processors of 2023: attn1.processor.to_q_lora.down.weight -> attn1.to_q.lora.down.weight; of text encoders
// self_attn.to_q_lora.down.weight -> self_attn.q_proj.lora.down.weight.
std::string without_processor(std::string name) {
  for (const auto& [old, own] : {std::pair{".self_attn.to_q_lora."sv, ".self_attn.q_proj.lora."sv},
                                 std::pair{".self_attn.to_k_lora."sv, ".self_attn.k_proj.lora."sv},
                                 std::pair{".self_attn.to_v_lora."sv, ".self_attn.v_proj.lora."sv},
                                 std::pair{".self_attn.to_out_lora."sv, ".self_attn.out_proj.lora."sv}}) {
    if (const std::size_t found = name.find(old); found != std::string::npos)
      return name.replace(found, old.size(), own);
  }
  const std::size_t at = name.find(".processor.");
  if (at == std::string::npos) return name;
  name.erase(at, std::string_view(".processor").size());
  const std::size_t end = name.find("_lora.", at);
  if (end == std::string::npos) return name;
  const bool is_out = name.substr(at, end - at) == ".to_out";
  return name.replace(end, std::string_view("_lora").size(), is_out ? ".0.lora" : ".lora");
}

std::string component_of(const std::string& layer) {
  return layer.substr(0, layer.find('.'));
}

}  // namespace

LoraKeys::LoraKeys(const ModelBundle& bundle) {
  const bool xl = bundle.is_xl();
  const NameTable ldm = ldm_unet_names(bundle.unet->config());
  for (const LoraLayer& entry : lora_layers(bundle)) {
    const std::string component = component_of(entry.path);
    const std::string inner = entry.path.substr(component.size() + 1);
    layer_[entry.path] = entry.path;
    if (component == "unet") {
      layer_[inner] = entry.path;  // files of a UNet alone
      const std::string as_diffusers = std::string(kUnetPrefix).append(with_underscores(inner));
      std::string as_ldm = ldm.ldm_name(inner + ".weight").name;
      as_ldm.erase(as_ldm.rfind('.'));
      layer_[std::string(kComfyUnetPrefix).append(as_ldm)] = entry.path;
      as_ldm = std::string(kUnetPrefix).append(with_underscores(as_ldm));
      layer_[as_diffusers] = layer_[as_ldm] = entry.path;
      kohya_[entry.path] = xl ? as_ldm : as_diffusers;
    } else {
      const std::string number = component == "text_encoder_2" ? "2" : "1";
      const std::string path = std::string("_").append(with_underscores(inner));
      const std::string numbered = std::string(kTextPrefix).append(number).append(path);
      const std::string plain = std::string(kTextPrefix).append(path);
      layer_[numbered] = entry.path;
      for (const char* clip : {"clip_l", "clip_h", "clip_g"}) {
        if ((component == "text_encoder_2") != (clip == "clip_g"sv)) continue;
        layer_[std::string(kComfyTextPrefix).append(clip).append(".transformer.").append(inner)] = entry.path;
      }
      // transformers 5 leaves the prefix of a CLIPTextModel out, and PEFT takes its names from there.
      if (inner.starts_with(kClipPrefix)) layer_[component + "." + inner.substr(std::strlen(kClipPrefix))] = entry.path;
      if (!xl) layer_[plain] = entry.path;
      kohya_[entry.path] = xl ? numbered : plain;
    }
  }
}

std::optional<LoraKey> LoraKeys::read(const std::string& stored, const std::string& where) const {
  for (const auto& [part, method] : kOtherMethods) {
    if (part.starts_with('.') ? !stored.ends_with(part) : stored.find(part) == std::string::npos) continue;
    throw WeightError(where, "is a " + std::string(method) + " (it holds " + stored + ")",
                      "LoRA, LoHa and LoKr on linear layers and convolutions can be read");
  }
  if (stored.find(".lora_B.") != std::string::npos && stored.ends_with(".bias")) {
    throw WeightError(where, "has biases beside its matrices (it holds " + stored + ")",
                      "they cannot be read; PEFT trains without them where lora_bias is False");
  }
  std::string name = stored;
  for (const std::string_view wrapper : {"base_model.model."sv, "_orig_mod."sv, "module."sv}) erase_all(name, wrapper);
  name = without_processor(without_adapter_name(name));
  const auto layer_before = [&](std::string_view ending) {
    const auto found = layer_.find(name.substr(0, name.size() - ending.size()));
    return found == layer_.end() ? std::string() : found->second;
  };
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    const std::string layer = layer_before(ending.text);
    return layer.empty() ? std::nullopt : std::optional(LoraKey{layer, ending.role});
  }
  for (const std::string& factor : lycoris_names()) {
    const std::string ending = "." + factor + (factor == "lora_mid" ? ".weight" : "");
    if (!name.ends_with(ending)) continue;
    const std::string layer = layer_before(ending);
    return layer.empty() ? std::nullopt : std::optional(LoraKey{layer, LoraRole::kLycoris, factor});
  }
  return std::nullopt;
}

std::string LoraKeys::write(const std::string& layer, LoraRole role, LoraStyle style) const {
  const bool kohya = style == LoraStyle::kKohya;
  const std::string module = kohya ? kohya_.at(layer) : layer;
  switch (role) {
    case LoraRole::kDown:
      return module + (kohya ? ".lora_down.weight" : ".lora_A.weight");
    case LoraRole::kUp:
      return module + (kohya ? ".lora_up.weight" : ".lora_B.weight");
    case LoraRole::kAlpha:
    case LoraRole::kLycoris:
      break;
  }
  return module + ".alpha";
}

}  // namespace sdtune::model
