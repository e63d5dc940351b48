// Prompts from a file, and the word in them that stands for the trained subject.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sdtune::model {

// What stands for the subject in a prompt.
inline constexpr std::string_view kTriggerMark = "{trigger}";

struct PromptLine {
  std::string text;
  std::string where;  // file:line, for errors
};

// The prompts of a YAML file (a list of texts; .yaml or .yml) or of a text file (one a line; empty lines and lines that
// begin with '#' are skipped). `file` is a path, or what comes with the installation:
// "configs/prompts/portraits.yaml" or just "portraits". Throws ConfigError naming file and line, or `where` for a file
// that does not exist.
std::vector<PromptLine> read_prompt_lines(const std::string& file, const std::string& where);

// The prompt with `trigger` in place of every mark.
std::string with_trigger(std::string prompt, const std::string& trigger);

}  // namespace sdtune::model
