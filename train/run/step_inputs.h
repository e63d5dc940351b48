// What a step reads that is another in each step: gathered on the host before its operators run, so that those are the
// same in every step of the same shapes.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/pipeline/prompt_encoding.h"
#include "train/run/run.h"

namespace sdtune::train {

// Samples of one size, which go through the UNet together.
struct SampleInputs {
  std::vector<model::SampleKey> keys;  // of the random numbers of each sample
  torch::Tensor latents;               // [B, C, h, w] in the compute dtype
  DiffusionDraws draws;
  model::PromptEmbeds embeds;       // of text encoders that this step does not train, [B, ..]
  model::PromptEmbeds base_embeds;  // else, with dco_beta, those of the text encoders before training, [B, ..]
  model::PromptIds ids;    // else what they encode: [B, 77], or distinct captions [D, 77] and the row of each sample
  torch::Tensor rows;      // [B] int64; undefined: each sample has a row of its own
  torch::Tensor time_ids;  // [B, 6] (SDXL), else undefined
  torch::Tensor mask;      // [B, 1, h, w], undefined without masked_loss
};

// Photos first, then class images: one part, or two where buckets make them two sizes.
struct MicroInputs {
  std::vector<SampleInputs> parts;
  std::int64_t instances = 0;
  bool trains_text = false;

  // What the operators read, in a fixed order; tensors that are undefined are left out.
  std::vector<torch::Tensor*> tensors();
  // Equal for inputs that the same operators compute on.
  std::string shapes();
};

// Of samples of which the first `instances` are photos.
MicroInputs gather_inputs(Run& run, const std::vector<BatchSlot>& slots, std::int64_t instances);

}  // namespace sdtune::train
