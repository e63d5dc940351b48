// Another autoencoder for a model, for example one that stays finite in half precision.
#pragma once

#include <filesystem>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

// Puts the VAE of `path` into the bundle, in the bundle's dtype and on its device. A folder: a VAE's own (config.json
// and weights), or that of a whole diffusers model. A safetensors file: a VAE alone, in LDM's or diffusers' names, or
// a whole LDM single file; it has no config, so the bundle's own VAE says what it is. Throws WeightError naming file
// and key: a pickle, tensors that are missing, left over or of another shape, latents that are not the UNet's.
void replace_vae(ModelBundle& bundle, const std::filesystem::path& path);

}  // namespace sdtune::model
