// The loss on photos that are not trained on, with the same noise at every step: a number that steps can be compared
// by, which the training loss is not.
#pragma once

#include <optional>

#include "train/run/run.h"

namespace sdtune::train {

// The mean over the held-out photos, each at eight timesteps that lie evenly in the range of training; weighted as the
// training loss is, without input perturbation. Unset in a run without validation_data_dir. Each rank computes all.
std::optional<double> held_out_loss(Run& run);

}  // namespace sdtune::train
