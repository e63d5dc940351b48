// A folder to generate with: a diffusers folder, or what a LoRA training made.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

// Whether the folder holds pytorch_lora_weights.safetensors and no model of its own.
bool is_lora_folder(const std::filesystem::path& folder);

// load_bundle; of a LoRA folder the base that its sdtune.json names, with the LoRA attached at full strength under
// the name "model", and the scheduler that the folder has, if any. Throws what load_bundle and read_lora throw, and
// WeightError when the folder does not say its base, or the base is gone or no longer the one that the LoRA was trained
// on.
ModelBundle load_model(const std::filesystem::path& folder, torch::Dtype dtype, torch::Device device);

}  // namespace sdtune::model
