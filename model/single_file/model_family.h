// Which of the three families a model is: each has its own layout in a single file.
#pragma once

#include "model/pipeline/bundle.h"
#include "model/pipeline/bundle_configs.h"
#include "model/single_file/ldm_file.h"

namespace sdtune::model {

enum class ModelFamily { kSd1, kSd2, kSdxl };

// "SD 1.x", "SD 2.x", "SDXL".
const char* family_name(ModelFamily family);

// By the header alone: the text encoders' prefixes tell the families apart. Throws WeightError naming the file for what
// has the same layout and is something else (inpainting, editing, depth and upscaling models, SDXL's refiner), for a
// file without a UNet, VAE or text encoder, and for other formats.
ModelFamily detect_family(const LdmFile& file);

// Of a diffusers model: the pipeline's class, and whose CLIP the text encoder is, which its activation tells
// (quick_gelu: OpenAI's, SD 1.x; gelu: OpenCLIP's, SD 2.x). Throws WeightError naming `where` for a model that the LDM
// layout has no place for.
ModelFamily family_of(const BundleConfigs& configs, const std::string& where);

}  // namespace sdtune::model
