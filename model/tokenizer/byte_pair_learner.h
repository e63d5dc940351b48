// Learns a vocabulary for CLIP's tokenizer from texts: byte-pair encoding by frequency (Sennrich et al., "Neural
// machine translation of rare words with subword units", 2016, algorithm 1) over bytes, with "</w>" at the end of
// words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/tokenizer/clip_tokenizer.h"

namespace sdtune {

// A tokenizer of at most `vocab_size` ids in CLIP's order: 256 bytes, 256 bytes that end a word, the merges most
// frequent first, <|startoftext|>, <|endoftext|>. It has fewer ids when no pair is left that occurs twice. Texts are
// cleaned and cut into words as ClipTokenizer does it. Depends on the texts' words and their counts alone: of equally
// frequent pairs the first in the order of their texts' bytes is merged. Texts of few different words, as captions are,
// suit it: time grows with the number of merges times the letters of all different words.
//
// Throws ConfigError for a vocab_size below 514 or a model_max_length out of 3..4096, and DataError naming the byte
// where a text is not UTF-8.
ClipTokenizer learn_tokenizer(const std::vector<std::string>& texts, std::int64_t vocab_size,
                              std::int64_t model_max_length = 77);

}  // namespace sdtune
