#include "train/objective/objective_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Loss"};
}

void add_noise_fields(ObjectiveOptions& options, FieldList& list) {
  FieldInfo offset =
      field("noise_offset", "Standard deviation of a shift of each channel's noise, for dark and bright.");
  offset.min = 0;
  offset.max = 1;
  FieldInfo perturbation = field("input_perturbation",
                                 "Standard deviation of more noise on what the UNet sees, which it is not to predict "
                                 "(Ning et al. 2023); 0.1 is usual.");
  perturbation.aliases = {"ip_noise_gamma"};
  perturbation.min = 0;
  perturbation.max = 1;
  FieldInfo first = field("min_timestep", "Least timestep that is trained; high ones decide layout, low ones detail.");
  first.min = 0;
  first.max = 999'999;
  FieldInfo end = field("max_timestep", "Timesteps below this are trained; none: all that the base has.");
  end.min = 1;
  end.max = 1'000'000;
  list.push_back({std::move(offset), &options.noise_offset});
  list.push_back({std::move(perturbation), &options.input_perturbation});
  list.push_back(
      {field("rescale_betas_zero_snr",
             "Train down to pure noise (zero terminal SNR, Lin et al. 2023), for pictures darker and brighter "
             "than the base draws; needs a base that predicts v, and is written into the result's scheduler."),
       &options.rescale_betas_zero_snr});
  list.push_back({std::move(first), &options.min_timestep});
  list.push_back({std::move(end), &options.max_timestep});
}

void add_error_fields(ObjectiveOptions& options, FieldList& list) {
  FieldInfo type = field("loss_type", "Squared error, or a pseudo-Huber loss that counts outliers less.");
  type.choices = {"l2", "huber", "smooth_l1"};
  FieldInfo width = field("huber_c", "Where the Huber losses turn from a square into a line, at most noise.");
  width.min = 0;
  width.exclusive_min = true;
  width.max = 1;
  FieldInfo schedule = field("huber_schedule", "How that widens towards 1 as the noise gets less.");
  schedule.choices = {"constant", "exponential", "snr"};
  list.push_back({std::move(type), &options.loss_type});
  list.push_back({std::move(width), &options.huber_c});
  list.push_back({std::move(schedule), &options.huber_schedule});
}

void add_mask_fields(ObjectiveOptions& options, FieldList& list) {
  FieldInfo outside = field("unmasked_weight", "Least weight of a place outside of the mask.");
  outside.min = 0;
  outside.max = 1;
  list.push_back(
      {field("masked_loss",
             "Weigh each photo's loss by its mask: NAME.mask.png beside it, white on the subject, or its alpha "
             "channel."),
       &options.masked_loss});
  list.push_back({std::move(outside), &options.unmasked_weight});
  list.push_back({field("normalize_masked_area_loss",
                        "Divide by the mask's mean weight, so that a small subject is trained as fast as a large one."),
                  &options.normalize_masked_area_loss});
}

}  // namespace

FieldList ObjectiveOptions::fields() {
  FieldInfo prior = field("prior_loss_weight", "Weight of the mean loss over class pictures beside that over photos.");
  prior.min = 0;
  prior.max = 1000;
  FieldInfo gamma = field("snr_gamma", "Min-SNR weighting (Hang et al. 2023) with this gamma, 5 is usual; none: off.");
  gamma.min = 0;
  gamma.exclusive_min = true;
  FieldList list;
  list.push_back({std::move(prior), &prior_loss_weight});
  list.push_back({std::move(gamma), &snr_gamma});
  add_noise_fields(*this, list);
  add_error_fields(*this, list);
  add_mask_fields(*this, list);
  return list;
}

std::vector<Problem> timestep_problems(const ObjectiveOptions& options, std::int64_t num_train_timesteps) {
  const std::int64_t end = options.max_timestep.value_or(num_train_timesteps);
  std::vector<Problem> problems;
  if (end > num_train_timesteps) {
    problems.push_back({"max_timestep",
                        "is beyond what the base has (got " + std::to_string(end) +
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
