#include "train/objective/objective_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Loss"};
}

}  // namespace

FieldList ObjectiveOptions::fields() {
  FieldInfo prior = field("prior_loss_weight", "Weight of the mean loss over class pictures beside that over photos.");
  prior.min = 0;
  prior.max = 1000;
  FieldInfo gamma = field("snr_gamma", "Min-SNR weighting (Hang et al. 2023) with this gamma, 5 is usual; none: off.");
  gamma.min = 0;
  gamma.exclusive_min = true;
  FieldInfo offset =
      field("noise_offset", "Standard deviation of a shift of each channel's noise, for dark and bright.");
  offset.min = 0;
  offset.max = 1;
  FieldList list;
  list.push_back({std::move(prior), &prior_loss_weight});
  list.push_back({std::move(gamma), &snr_gamma});
  list.push_back({std::move(offset), &noise_offset});
  return list;
}

}  // namespace sdtune::train
