// Tells one model from another without reading all of it.
#pragma once

#include <filesystem>
#include <string>

namespace sdtune {

// SHA-256 of what a LoRA builds on, UNet and text encoders of a diffusers folder: names and sizes of their config.json
// and safetensors files, the small ones whole, of large ones 256 evenly spaced blocks of 4 KiB. Training changes every
// block; a few bits that flipped elsewhere stay unseen. Throws WeightError for a file that cannot be read.
std::string model_fingerprint(const std::filesystem::path& folder);

}  // namespace sdtune
