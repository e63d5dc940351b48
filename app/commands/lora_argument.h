// What --lora takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/pipeline/bundle.h"

namespace sdtune::app {

struct LoraArgument {
  std::filesystem::path file;  // a safetensors file
  double weight = 1.0;         // its branches count weight x alpha / rank
};

// "FILE", "FILE:0.8", and a run folder or the folder of a LoRA in the file's place. Appends a problem and gives nothing
// for what cannot be.
std::vector<LoraArgument> read_lora_arguments(const std::vector<std::string>& texts, std::vector<Problem>& problems);

// Hangs each on the model; the same file twice adds up. Throws WeightError for one that does not fit.
void attach_loras(const model::ModelBundle& bundle, const std::vector<LoraArgument>& loras);

// Takes them off again: the list that was attached.
void detach_loras(const model::ModelBundle& bundle, const std::vector<LoraArgument>& loras);

}  // namespace sdtune::app
