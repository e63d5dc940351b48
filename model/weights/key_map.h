// Older and foreign spellings of parameter names, brought to ours.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::model {

// Which family of names a part uses.
enum class KeyFamily { kUNet, kVae, kTextEncoder };

// Our parameter name for a stored one, or "" for a stored tensor that carries nothing (position_ids, logit_scale).
//   VAE: attentions of old files, query/key/value/proj_attn -> to_q/to_k/to_v/to_out.0
//   text encoder: transformers 5 writes a plain CLIPTextModel without the prefix `text_model.`; ours has it
//   all: `module.` and `_orig_mod.`, which wrapped models leak
std::string our_key(KeyFamily family, const std::string& stored);

// The stored tensor in the shape of our parameter: [O, I, 1, 1] <-> [O, I] for projections that were 1 x 1 convolutions
// and are linear now, or the other way; any other tensor as it is.
torch::Tensor fit_projection(const torch::Tensor& stored, torch::IntArrayRef shape);

}  // namespace sdtune::model
