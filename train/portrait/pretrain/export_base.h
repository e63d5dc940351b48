// The trained base as a folder that diffusers loads.
#pragma once

#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "model/pipeline/bundle.h"

namespace sdtune::train::pretrain {

// The same weights under a config with this scaling factor.
model::AutoencoderKL with_scaling_factor(const model::AutoencoderKL& vae, double factor);

// A diffusers folder in float16, with the installation's presets of that name (full_NAME.yaml, lora_NAME.yaml):
// what `sdtune train` does with this base unless told.
void export_base(FileSystem& files, const model::ModelBundle& bundle, const std::string& preset,
                 const std::filesystem::path& folder);

}  // namespace sdtune::train::pretrain
