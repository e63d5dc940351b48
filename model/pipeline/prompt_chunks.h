// A prompt as the rows of tokens that a text encoder takes: one, or as many as the text needs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/pipeline/learned_tokens.h"
#include "model/pipeline/prompt_syntax.h"

namespace sdtune::model {

// Start token, up to 75 tokens, end token, padding.
struct PromptChunk {
  std::vector<std::int64_t> ids;  // model_max_length of them
  std::vector<float> weights;     // one an id; 1 for what is no word
};

// kPlain: one chunk, cut. kWeighted: a new chunk after 75 tokens or at BREAK; where a chunk is full within 20 tokens
// behind a comma, what stands behind the comma moves into the next one; a learned token is not parted. Throws DataError
// for text that is not UTF-8, ConfigError as parse_weighted_prompt.
std::vector<PromptChunk> chunk_prompt(const PromptVocabulary& vocabulary, std::string_view prompt, PromptSyntax syntax);

// Of no words, as the empty prompt.
PromptChunk empty_chunk(const ClipTokenizer& tokenizer);

}  // namespace sdtune::model
