// The hashes by which A1111-style programs know a LoRA, whatever its file is called and its header says.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "model/weights/safetensors_writer.h"

namespace sdtune::model {

// Adds to the metadata of a file with these tensors, as write_safetensors writes it, what kohya's trainer does
// (github.com/kohya-ss/sd-scripts, train_util.precalculate_safetensors_hashes):
//   sshs_model_hash   SHA-256 of all bytes behind the header
//   sshs_legacy_hash  the first 8 digits of SHA-256 of the 64 KiB at 1 MiB, of the file whose header has only the ss_*
//   keys
void add_lora_hashes(const NamedTensors& tensors, std::map<std::string, std::string>& metadata);

// The sshs_model_hash of a file: as its header says, which A1111 takes at its word, else computed. Throws WeightError
// for a file that is no safetensors file.
std::string lora_model_hash(const std::filesystem::path& path);

}  // namespace sdtune::model
