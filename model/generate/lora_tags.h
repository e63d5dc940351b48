// <lora:NAME:WEIGHT> in a prompt, as web interfaces write LoRAs; <lyco:...> means the same there.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/generate/generate_options.h"

namespace sdtune::model {

struct LoraTag {
  std::string text;              // as written, for errors
  std::string name;              // of a file below --lora-dir without its ending, or a path
  std::string weight = "1";      // not parsed yet
  bool is_hypernetwork = false;  // <hypernet:...>, which is no LoRA
};

// Takes the tags out of the prompt, with the spaces that would be left double.
std::vector<LoraTag> take_lora_tags(std::string& prompt);

// Appends the LoRAs of the prompt's tags to options.loras and takes the tags out of the prompt (not with prompt_syntax
// plain, where they are words). `folder` is where a NAME is looked for. Adds a problem naming `where` for each tag that
// names no LoRA or two weights, or a hypernetwork.
void resolve_lora_tags(GenerateOptions& options, const std::string& folder, const std::string& where,
                       std::vector<Problem>& problems);

// "<lora:NAME:WEIGHT>" of each, as a web interface shows them behind the prompt; empty for none.
std::string lora_tags_text(const std::vector<WeightedLora>& loras);

}  // namespace sdtune::model
