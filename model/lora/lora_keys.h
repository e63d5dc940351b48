// The names that LoRA files give to layers, in every spelling that is met.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

enum class LoraStyle {
  kDiffusers,  // unet.<path>.lora_A.weight, PEFT's names under the component's
  kKohya,      // lora_unet_<path with underscores>.lora_down.weight, SDXL's UNet by its LDM names
};

// What one tensor of a file is.
enum class LoraRole { kDown, kUp, kAlpha, kLycoris };

struct LoraKey {
  std::string layer;  // path of the layer in our model: "unet.mid_block.attentions.0. ... .to_q"
  LoraRole role = LoraRole::kDown;
  std::string factor = {};  // of LyCORIS: "hada_w1_a", ... (model/lora/lycoris.h)
};

class LoraKeys {
 public:
  explicit LoraKeys(const ModelBundle& bundle);

  // What a stored name means: PEFT's and diffusers' dotted names, old attention processors, kohya's names; wrappers'
  // prefixes (base_model.model., _orig_mod., module.) are passed over. Empty for what is no layer of this model. Throws
  // WeightError naming `where` for methods that cannot be read: DoRA, OFT, BOFT, IA3, GLoRA, LyCORIS' whole weights and
  // norms, OneTrainer's embeddings, PEFT's lora_bias.
  std::optional<LoraKey> read(const std::string& stored, const std::string& where) const;

  // The name of the layer's tensor in a file of that style; LyCORIS is not written.
  std::string write(const std::string& layer, LoraRole role, LoraStyle style) const;

 private:
  std::map<std::string, std::string> kohya_;  // layer -> kohya's module name
  std::map<std::string, std::string> layer_;  // any module name, dotted or kohya's -> layer
};

}  // namespace sdtune::model
