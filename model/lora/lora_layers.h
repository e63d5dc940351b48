// The layers of a model that low-rank branches can be attached to, by diffusers' paths.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "model/nn/low_rank.h"
#include "model/pipeline/bundle.h"

namespace sdtune::model {

struct LoraLayer {
  std::string path;               // "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q"
  LowRankLayer* layer = nullptr;  // lives as long as the bundle
  bool is_convolution = false;    // with a kernel above 1
};

// Every linear layer and convolution of unet, text_encoder and text_encoder_2, in the order of the modules.
std::vector<LoraLayer> lora_layers(const ModelBundle& bundle);

// Whether `pattern` selects the path, as PEFT's target_modules does: the whole path, or its last names ("to_q",
// "attn2.to_k", "to_out.0"); with '*' for any part of a name ("mid_block.*.to_q").
bool selects_layer(const std::string& pattern, const std::string& path);

}  // namespace sdtune::model
