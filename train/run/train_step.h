// One optimizer step: micro-batches -> scaled backward -> reduced gradients -> clipped update.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/run/step_inputs.h"

namespace sdtune::train {

// The numbers of a step, still on the device: [kStepNumbers] float64 in the order below, and where several ranks train
// [kStepNumbers + 2 x ranks], followed by how long the ranks took (StepTimes::own()).
enum StepNumber : std::int64_t { kLossInstance, kLossPrior, kGradNorm, kLossScale, kUpdatesBefore, kStepNumbers };

// Does step `step` (0-based: the steps done before it) on this rank. Never reads the device. Where gradients are not
// finite, weights and moments stay as they were and the norm says so.
//
// With micro_batch: auto on one rank, a step that runs out of memory is begun again with a smaller micro-batch, and
// run.warnings says so; nothing is lost, because nothing was changed yet.
torch::Tensor train_step(Run& run, std::uint64_t step);

// Forward and backward of a step of these micro-batches on one rank, with nothing asked of the host: the gradients into
// the buckets, and the two losses, [2].
torch::Tensor compute_gradients(Run& run, const std::vector<MicroInputs>& inputs);

// Forward and backward of one micro-batch of the first step; the gradients go nowhere. To see whether memory suffices.
void probe_gradients(Run& run);

}  // namespace sdtune::train
