// LoRAs of a drawing: those of --lora, and the <lora:NAME:WEIGHT> of a prompt, as web interfaces write them.
#pragma once

#include <string>
#include <vector>

#include "app/commands/sample_options.h"
#include "model/base/error.h"

namespace sdtune::app {

struct LoraTag {
  std::string text;          // as written, for errors
  std::string name;          // of a file below --lora-dir without its ending, or a path
  std::string weight = "1";  // not looked at yet
};

// Takes the tags out of the prompt, with the spaces that would be left double.
std::vector<LoraTag> take_lora_tags(std::string& prompt);

// Makes options.lora the list of files ("FILE:WEIGHT") that the prompt is drawn with, those of its tags last, and takes
// the tags out of the prompt (not with prompt_syntax plain, where they are words). Adds a problem for each that is
// nowhere.
void resolve_loras(SampleOptions& options, const std::string& where, std::vector<Problem>& problems);

// "<lora:NAME:WEIGHT>" of each, as a web interface shows them behind the prompt; empty for none.
std::string lora_tags_text(const std::vector<std::string>& loras);

}  // namespace sdtune::app
