#include "train/config/objective_options.h"

#include <string>

namespace sdtune::train {

namespace {

void add_weighting(TrainOptionGroup& group, ObjectiveOptions& options) {
  group
      .add("prior_loss_weight", &options.prior_loss_weight, Resume::kMustMatch,
           "Weight of the mean loss over class images; that over photos has weight 1.")
      .range(0, 1000);
  group
      .add("snr_gamma", &options.snr_gamma, Resume::kMustMatch,
           "Gamma of min-SNR loss weighting (Hang et al. 2023), usually 5; unset: disabled.")
      .above(0);
  group
      .add("dco_beta", &options.dco_beta, Resume::kMustMatch,
           "Beta of Direct Consistency Optimization (Lee et al. 2024): photos that the model already predicts better "
           "than the base by about 1 / beta count less, against copies of the photos; unset: disabled.")
      .aliases({"dcoloss_beta"})
      .above(0);
}

void add_noise(TrainOptionGroup& group, ObjectiveOptions& options) {
  group
      .add("noise_offset", &options.noise_offset, Resume::kMustMatch,
           "Standard deviation of a random offset of each channel's noise, for very dark and very bright images.")
      .range(0, 1);
  group
      .add("input_perturbation", &options.input_perturbation, Resume::kMustMatch,
           "Standard deviation of additional noise on the UNet's input that is not part of the target (Ning et al. "
           "2023), usually 0.1.")
      .aliases({"ip_noise_gamma"})
      .range(0, 1);
  group.add("rescale_betas_zero_snr", &options.rescale_betas_zero_snr, Resume::kMustMatch,
            "Rescale the betas to zero terminal SNR (Lin et al. 2023), for very dark and very bright images; needs a "
            "base with v_prediction, and is written into the result's scheduler config.");
  group
      .add("min_timestep", &options.min_timestep, Resume::kMustMatch,
           "Lowest timestep to train; high timesteps determine the layout, low ones the detail.")
      .range(0, 999'999);
  group
      .add("max_timestep", &options.max_timestep, Resume::kMustMatch,
           "Timesteps below this one are trained; unset: all timesteps of the base.")
      .range(1, 1'000'000);
}

void add_error(TrainOptionGroup& group, ObjectiveOptions& options) {
  group
      .add("loss_type", &options.loss_type, Resume::kMustMatch,
           "Squared error, or a pseudo-Huber loss that reduces the influence of outliers.")
      .choices({"l2", "huber", "smooth_l1"});
  group
      .add("huber_c", &options.huber_c, Resume::kMustMatch,
           "Threshold between the quadratic and the linear part of the Huber losses, at the highest noise level.")
      .above(0)
      .at_most(1);
  group
      .add("huber_schedule", &options.huber_schedule, Resume::kMustMatch,
           "How the threshold rises towards 1 as the noise level falls.")
      .choices({"constant", "exponential", "snr"});
}

void add_mask(TrainOptionGroup& group, ObjectiveOptions& options) {
  group.add("masked_loss", &options.masked_loss, Resume::kMustMatch,
            "Weight each photo's loss by its mask: NAME.mask.png beside it, white on the subject, or its alpha "
            "channel.");
  group.add("unmasked_weight", &options.unmasked_weight, Resume::kMustMatch, "Lowest weight outside of the mask.")
      .range(0, 1);
  group.add(
      "normalize_masked_area_loss", &options.normalize_masked_area_loss, Resume::kMustMatch,
      "Divide the loss by the mean weight of the mask, so that small subjects are trained as fast as large ones.");
}

}  // namespace

TrainFieldList ObjectiveOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Loss");
  add_weighting(group, *this);
  add_noise(group, *this);
  add_error(group, *this);
  add_mask(group, *this);
  return list;
}

std::vector<Problem> timestep_problems(const ObjectiveOptions& options, std::int64_t num_train_timesteps) {
  const std::int64_t end = options.max_timestep.value_or(num_train_timesteps);
  std::vector<Problem> problems;
  if (end > num_train_timesteps) {
    problems.push_back({"max_timestep",
                        "is above the number of timesteps of the base (got " + std::to_string(end) +
                            "; allowed: 1 <= x <= " + std::to_string(num_train_timesteps) + ")",
                        ""});
  }
  if (options.min_timestep >= end) {
    problems.push_back({"min_timestep",
                        "leaves no timestep to train (got " + std::to_string(options.min_timestep) +
                            "; allowed: 0 <= x < " + std::to_string(end) + ")",
                        ""});
  }
  return problems;
}

}  // namespace sdtune::train
