// Whether the values of a UNet's config fit each other.
#pragma once

#include "model/base/json.h"
#include "model/unet/unet_config.h"

namespace sdtune::model {

// Throws WeightError, naming file and key, for an unknown block type, a list of the wrong length, channels that do not
// divide into groups or heads, and numbers out of range.
void check_unet_config(const UNetConfig& config, const JsonObject& object);

}  // namespace sdtune::model
