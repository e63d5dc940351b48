// Textual inversions: vectors that the text encoder takes for a new word (Gal et al., "An image is worth one word",
// 2022).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

struct TextualInversion {
  std::string token;        // what calls it
  torch::Tensor vectors;    // [N, D] of the (first) text encoder
  torch::Tensor vectors_2;  // [N, D2] of the second (SDXL), else undefined
};

// A safetensors file of A1111 (emb_params; for SDXL clip_l and clip_g) or diffusers ({token: vectors}). `token` empty:
// the file's name without its ending, or diffusers' key (not "*", A1111's of a pickle). Throws WeightError naming the
// file: a pickle (.pt, .bin), other tensors than these, vectors of another width than the model's, more of them than a
// prompt's chunk holds.
TextualInversion read_textual_inversion(const std::filesystem::path& path, const ModelBundle& bundle,
                                        const std::string& token);

// From now on the token calls the vectors in prompts of this bundle (and of its copies that come later). Throws
// ConfigError naming "token" when one of that name is there.
void add_textual_inversion(ModelBundle& bundle, const TextualInversion& inversion);

// All of them.
void remove_textual_inversions(ModelBundle& bundle);

}  // namespace sdtune::model
