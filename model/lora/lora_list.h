// LoRAs as a user lists them: files, each with a weight.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/pipeline/bundle.h"

namespace sdtune::model {

struct WeightedLora {
  std::filesystem::path file;  // a safetensors file
  double weight = 1.0;         // its branches count weight x alpha / rank

  bool operator==(const WeightedLora&) const = default;
};

// "FILE", "FILE:0.8", and a run folder or the folder of a LoRA in the file's place. Appends a problem that names
// `where`, and gives nothing, for a weight outside -100..100 and for a path without a LoRA.
std::vector<WeightedLora> parse_lora_list(const std::vector<std::string>& texts, const std::string& where,
                                          std::vector<Problem>& problems);

// The shortest text that reads back as the same number: "0.8", "1".
std::string weight_text(double weight);

// "FILE:WEIGHT", which parse_lora_list reads back to an equal value.
std::string lora_text(const WeightedLora& lora);

// Attaches all to the model, or none; the same file twice adds up. Throws WeightError for one that does not fit.
void attach_loras(const ModelBundle& bundle, const std::vector<WeightedLora>& loras);

// Detaches them: the list that was attached.
void detach_loras(const ModelBundle& bundle, const std::vector<WeightedLora>& loras);

}  // namespace sdtune::model
