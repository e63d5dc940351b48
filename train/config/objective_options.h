// The options of what is minimised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_option_group.h"

namespace sdtune::train {

struct ObjectiveOptions {
  double prior_loss_weight = 1.0;
  std::optional<double> snr_gamma;  // unset: every timestep weighs the same
  std::optional<double> dco_beta;   // unset: every photo weighs the same
  double noise_offset = 0.0;
  double input_perturbation = 0.0;
  bool rescale_betas_zero_snr = false;
  std::int64_t min_timestep = 0;
  std::optional<std::int64_t> max_timestep;  // exclusive; unset: the base's num_train_timesteps
  bool masked_loss = false;
  double unmasked_weight = 0.1;
  bool normalize_masked_area_loss = false;
  std::string loss_type = "l2";  // l2, huber, smooth_l1
  double huber_c = 0.1;
  std::string huber_schedule = "snr";  // constant, exponential, snr

  TrainFieldList fields();
};

// What is wrong with the range of timesteps for a base that has `num_train_timesteps`; empty: nothing.
std::vector<Problem> timestep_problems(const ObjectiveOptions& options, std::int64_t num_train_timesteps);

}  // namespace sdtune::train
