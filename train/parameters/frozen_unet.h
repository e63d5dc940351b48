// A UNet as it is before it is trained.
#pragma once

#include "model/unet/unet.h"

namespace sdtune::train {

// Predicts what `unet` does now, whatever becomes of that: weights that require gradients are copied, in their dtype,
// device and memory order; all others are shared. LoRA's branches are left out. Nothing of it requires gradients.
model::UNet2DConditionModel frozen_copy(const model::UNet2DConditionModel& unet);

}  // namespace sdtune::train
