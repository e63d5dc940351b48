// Emphasis in prompts: (word), (word:1.2), [word] and BREAK, by the rules of AUTOMATIC1111's web interface, which
// docs/prompts.md states.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sdtune::model {

// How the text of a prompt is read.
enum class PromptSyntax {
  kPlain,     // letter by letter, cut at the tokenizer's length: diffusers' pipelines
  kWeighted,  // with emphasis, in as many chunks as it takes: the web interfaces
};

// "plain" or "weighted". Throws ConfigError naming `where`.
PromptSyntax parse_prompt_syntax(const std::string& name, const std::string& where);

struct PromptPiece {
  std::string text;
  double weight = 1.0;
  bool is_break = false;  // the next piece begins a chunk; no text
};

// The pieces in order, neighbours of one weight joined; at least one. Throws ConfigError naming "prompt" for a weight
// that is no number, and for [from:to:when] and [one|other], which change the prompt between steps.
std::vector<PromptPiece> parse_weighted_prompt(std::string_view prompt);

}  // namespace sdtune::model
