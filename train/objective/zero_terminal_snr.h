// Training down to pure noise: Lin et al., "Common diffusion noise schedules and sample steps are flawed" (WACV 2024).
// The betas are rescaled so that nothing of the image is left at the last timestep; a model trained so is to be
// sampled with the same betas and from the last timestep on.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/pipeline/bundle.h"
#include "train/config/objective_options.h"

namespace sdtune::train {

// What keeps rescale_betas_zero_snr from being used with this scheduler_config.json: a prediction of epsilon, which is
// the input itself at the last timestep and so teaches nothing. Empty where it is not asked for.
std::vector<Problem> zero_snr_problems(const ObjectiveOptions& options, const Json& scheduler_config);

// Makes the bundle's scheduler one of rescaled betas and trailing timesteps, as diffusers recommends; its class becomes
// DDIM, the paper's, where it does not know such betas. Returns a note for the user about that, or "".
std::string rescale_to_zero_snr(model::ModelBundle& bundle);

}  // namespace sdtune::train
