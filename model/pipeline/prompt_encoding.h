// Prompts to what the UNet attends to: one text encoder (SD 1.x, 2.x) or two (SDXL).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

// Token ids of a batch of prompts, a tensor for each tokenizer of the bundle.
struct PromptIds {
  torch::Tensor ids;    // [B, 77] int64
  torch::Tensor ids_2;  // [B, 77] int64 (SDXL), else undefined
};

struct PromptEmbeds {
  torch::Tensor context;  // [B, 77, D], or several chunks behind each other: [B, chunks x 77, D]
  torch::Tensor pooled;   // [B, P] (SDXL: of text_encoder_2), else undefined
};

// On the device of the text encoder. Throws DataError for text that is not UTF-8.
PromptIds tokenize_prompts(const ModelBundle& bundle, const std::vector<std::string>& prompts);

// SD: the encoder's last hidden state. SDXL: the penultimate hidden states of both encoders side by side, and the
// pooled output of the second. `clip_skip` layers more are left out at the end; SD's final norm then follows the last
// one that is left, SDXL has none. Gradients flow, unless the caller guards against them. Throws ConfigError naming
// "clip_skip" where not so many layers are there.
PromptEmbeds encode_prompts(ModelBundle& bundle, const PromptIds& ids, std::int64_t clip_skip = 0);

}  // namespace sdtune::model
