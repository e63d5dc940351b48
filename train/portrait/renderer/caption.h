// Words for a portrait: a grammar with synonyms, shuffled order and left-out attributes, so that a model learns the
// words and not the sentence. Marks, face shape and skin tone are never named: they are what DreamBooth has to learn.
#pragma once

#include <cstdint>
#include <string>

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// A caption of this image; the same seed gives the same words. The class word is always "person".
std::string caption(const Identity& who, const Context& now, std::uint64_t caption_seed);

// The same with nothing left out: every attribute that has words, by a word of its own.
std::string full_caption(const Identity& who, const Context& now, std::uint64_t caption_seed);

// What is worn, the expression and the place, always in the same words: "wearing a red hoodie and sunglasses, smiling,
// on a beach". Empty for another style than a photo.
std::string context_words(const Context& now);

}  // namespace sdtune::train::portrait
