// The options of what is minimised.
#pragma once

#include <optional>

#include "model/base/field.h"

namespace sdtune::train {

struct ObjectiveOptions {
  double prior_loss_weight = 1.0;
  std::optional<double> snr_gamma;  // unset: every timestep weighs the same
  double noise_offset = 0.0;

  FieldList fields();
};

}  // namespace sdtune::train
