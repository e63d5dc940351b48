// What the config.json of a UNet and of a VAE say alike.
#pragma once

#include <cstdint>

#include "model/base/json.h"
#include "model/nn/activation.h"

namespace sdtune::model {

// "act_fn", silu where it is not given. Throws WeightError for one that these networks do not have.
Activation read_activation(JsonObject& object);

// "sample_size": one number, or height and width when they are equal; `fallback` where it is null or not given. Throws
// WeightError for another shape than a square and for a side that is not 1 to `max`.
std::int64_t read_sample_size(JsonObject& object, std::int64_t fallback, std::int64_t max);

}  // namespace sdtune::model
