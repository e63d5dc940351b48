// The prompts of identity evaluation during a run.
#pragma once

#include <string>
#include <vector>

namespace sdtune::train {

struct IdentityPrompt {
  std::string opening;  // "a pencil drawing of"
  std::string details;  // ", on a beach" or nothing

  // "a pencil drawing of sks person, on a beach".
  std::string text(const std::string& who) const { return opening + " " + who + details; }
};

// Eight prompts. None of them is among those that `eval` reports on, so a step chosen by these was not chosen by what
// it is measured with.
const std::vector<IdentityPrompt>& identity_prompts();

}  // namespace sdtune::train
