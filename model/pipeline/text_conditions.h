// The texts of a sampling run, prompt and negative prompt together, as the UNet is conditioned on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "model/pipeline/prompt_encoding.h"
#include "model/pipeline/prompt_syntax.h"

namespace sdtune::model {

// How texts are read and encoded.
struct PromptRules {
  PromptSyntax syntax = PromptSyntax::kPlain;
  // Layers of the text encoder left out at the end, as diffusers counts: 1 is the penultimate layer, for SDXL the one
  // before it. kWeighted: of both texts, as in the web interfaces; kPlain: of the prompt alone, as in diffusers.
  std::int64_t clip_skip = 0;
};

struct GuidedTexts {
  PromptEmbeds conditional;
  PromptEmbeds unconditional;  // undefined unless guided; as many chunks as the conditional
};

// Without a negative prompt the unconditional one is that of "", or zeros where the bundle says so (SDXL). Weights
// multiply the states of their tokens, encoder by encoder, and each chunk keeps its mean, as A1111's emphasis mode
// "Original" has it. Throws ConfigError and DataError as chunk_prompt and encode_prompts do.
GuidedTexts encode_texts(ModelBundle& bundle, const std::vector<std::string>& prompts,
                         const std::optional<std::string>& negative_prompt, const PromptRules& rules, bool guided);

// How many tokens of the prompt kPlain leaves out: those over 75.
std::int64_t count_cut_tokens(const ModelBundle& bundle, const std::string& prompt);

}  // namespace sdtune::model
