// Stability's metadata of a safetensors file, "modelspec" 1.0.0 (github.com/Stability-AI/ModelSpec): what programs show
// of a model without loading it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/pipeline/bundle.h"
#include "model/single_file/model_family.h"

namespace sdtune::model {

// The published family whose LoRAs and weights fit `bundle`, by the width of its prompt embeddings (SD 1.x 768, SD 2.x
// 1024, SDXL 2048 with two text encoders); unset for a base of one's own, such as the bundled one.
std::optional<ModelFamily> published_family(const ModelBundle& bundle);

// The fields without their prefix "modelspec.": sai_model_spec, title, prediction_type ("epsilon" or "v"; absent of a
// model that predicts x0, for which there is no word), resolution ("512x512") where the UNet has one, and architecture,
// "stable-diffusion-v1" and the like where `family` is set.
std::map<std::string, std::string> model_spec(const ModelBundle& bundle, std::optional<ModelFamily> family,
                                              const std::string& title);

}  // namespace sdtune::model
