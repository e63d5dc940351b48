// One optimizer step: micro-batches -> scaled backward -> reduced gradients -> clipped update.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "train/run/run.h"

namespace sdtune::train {

// The numbers of a step, still on the device: [kStepNumbers] float64 in the order below.
enum StepNumber : std::int64_t { kLossInstance, kLossPrior, kGradNorm, kLossScale, kUpdatesBefore, kStepNumbers };

// Does step `step` (0-based: the steps done before it) on this rank. Never reads the device. Where gradients are not
// finite, weights and moments stay as they were and the norm says so.
torch::Tensor train_step(Run& run, std::uint64_t step);

}  // namespace sdtune::train
