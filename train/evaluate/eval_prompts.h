// The prompts of an evaluation: what they say, what the judge should then read, and a render that shows the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/judge/judge_heads.h"

namespace sdtune::train::evaluate {

struct Asked {
  judge::Head head;
  std::int64_t shown;  // class of the head
};

struct EvalPrompt {
  std::string opening;  // "a pencil sketch of"
  std::string details;  // ", on a beach" or nothing
  std::vector<Asked> asked;

  // "a pencil sketch of sks person, on a beach".
  std::string text(const std::string& who) const { return opening + " " + who + details; }
  bool asks(judge::Head head) const;
  // A moment of this picture seed that shows what is asked. What captions would name is left out where it is not asked
  // (hat, glasses, expression); place, clothes, pose and light are the seed's.
  portrait::Context context(std::uint64_t picture_seed) const;
};

// Fourteen prompts in the words of the portrait base's captions: plain, six places, three styles, two hats, sunglasses
// and clothes.
const std::vector<EvalPrompt>& eval_prompts();

// Eight prompts for looks while a run goes on (identity_probe.h). None of them is in eval_prompts(), so a step that was
// chosen by these was not chosen by its exam.
const std::vector<EvalPrompt>& probe_prompts();

// The first of eval_prompts(), which asks nothing: "a photo of WHO".
const EvalPrompt& plain_prompt();

}  // namespace sdtune::train::evaluate
