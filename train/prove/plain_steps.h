// The steps of a record once more, stated plainly: one forward pass over the whole batch in float32 on the CPU, the
// loss by its formula, autograd, the norm, AdamW by its statement. No buckets, no kernels of the optimizer, no loss
// scale.
#pragma once

#include "train/prove/step_record.h"

namespace sdtune::train {

// `run`: of the same base and options on the CPU in float32 (build_prepared_run); its UNet's weights are changed. The
// inputs are those of `of`, so that what differs is the steps' computation alone. Has losses, norms, gradient.NAME and
// change.NAME.
StepRecord plain_steps(Run& run, const StepRecord& of);

// How far the inputs of a record are from those that `run` prepares itself for the same steps: relative, the worst of
// all.
struct InputErrors {
  double latents = 0, context = 0, noise = 0;
  bool same_timesteps = true;
};
InputErrors input_errors(Run& run, const StepRecord& of);

}  // namespace sdtune::train
