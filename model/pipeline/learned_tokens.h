// Words that a textual inversion taught the text encoder: a name in the prompt that stands for vectors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/clip_tokenizer.h"

namespace sdtune::model {

struct LearnedToken {
  std::string text;           // "<cat-toy>", "easynegative"
  std::int64_t first_id = 0;  // of its vectors, behind the vocabulary's ids
  std::int64_t count = 0;     // vectors
};

// What a text encoder understands.
struct PromptVocabulary {
  const ClipTokenizer& tokenizer;
  const std::vector<LearnedToken>& learned;
};

// The ids of a text without framing, each in a group of its own, those of a learned token in one. A token is found
// wherever its text stands, upper or lower case, with no letter or digit directly beside it; of two that fit, the
// longer. Throws DataError for text that is not UTF-8.
std::vector<std::vector<std::int64_t>> encode_groups(const PromptVocabulary& vocabulary, std::string_view text);

}  // namespace sdtune::model
