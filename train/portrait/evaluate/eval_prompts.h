// The prompts of an evaluation: what they say, what the classifier should then read, and a render that shows the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::evaluate {

struct Asked {
  classifier::Head head;
  std::int64_t shown;  // class of the head
};

struct EvalPrompt {
  std::string opening;  // "a pencil sketch of"
  std::string details;  // ", on a beach" or nothing
  std::vector<Asked> asked;

  // "a pencil sketch of sks person, on a beach".
  std::string text(const std::string& who) const { return opening + " " + who + details; }
  bool asks(classifier::Head head) const;
  // A moment of this image seed that shows what is asked. What captions would name is left out where it is not asked
  // (hat, glasses, expression); place, clothes, pose and light are the seed's.
  portrait::Context context(std::uint64_t image_seed, portrait::Detail detail = portrait::Detail::k64) const;
};

// Fourteen prompts in the words of the portrait base's captions: plain, six places, three styles, two hats, sunglasses
// and clothes.
const std::vector<EvalPrompt>& eval_prompts();

// What each of identity_prompts() (train/identity/identity_prompts.h) asks, in their order.
const std::vector<std::vector<Asked>>& asked_of_identity_prompts();

// identity_prompts() with what they ask.
std::vector<EvalPrompt> readable_identity_prompts();

// The first of eval_prompts(), which asks nothing: "a photo of WHO".
const EvalPrompt& plain_prompt();

}  // namespace sdtune::train::evaluate
