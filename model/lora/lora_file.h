// LoRA files: diffusers' and PEFT's, kohya's, and what older tools wrote.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "model/files/file_system.h"
#include "model/lora/lora_keys.h"
#include "model/lora/lora_weights.h"

namespace sdtune::model {

// The name that diffusers gives the file inside a folder.
inline constexpr const char* kLoraFile = "pytorch_lora_weights.safetensors";

// The file that `path` stands for: itself, or of a folder its pytorch_lora_weights.safetensors, or that of the run in
// the folder. Throws WeightError naming the path when there is none.
std::filesystem::path find_lora_file(const std::filesystem::path& path);

// Reads a safetensors file for a model. alpha comes from the file's .alpha tensors, else from the header's
// lora_adapter_metadata (diffusers since 0.34) or the adapter_config.json of PEFT's own folder, else it is the rank.
// LoHa, LoKr and Tucker convolutions of LyCORIS come as what they add to the weight. Throws WeightError that counts and
// names: keys that are no layer of this model, a matrix without its other half, nothing at all; DoRA, OFT and biases by
// name; a matrix without a rank, an alpha that is not finite, and what began as a part of the base (PiSSA). Whether
// shapes fit the model is for check_lora to say.
LoraWeights read_lora(const std::filesystem::path& path, const ModelBundle& bundle);

// Writes the file whole or not at all and reads it again: it gets its name once every tensor and alpha came back
// bit-equal, and a file that was there stays otherwise. `dtype` unset: as the weights are. Throws StorageError, and
// WeightError where they did not.
void write_lora(FileSystem& files, const std::filesystem::path& path, const ModelBundle& bundle,
                const LoraWeights& weights, LoraStyle style, std::optional<torch::Dtype> dtype = std::nullopt,
                std::map<std::string, std::string> metadata = {});

}  // namespace sdtune::model
