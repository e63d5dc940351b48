// How long the generation of images will take, from its beginning.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/stop_flag.h"
#include "model/generate/generate_options.h"
#include "model/pipeline/bundle.h"

namespace sdtune::train {

// Seconds for one batch of `batch` images of `prompt`: the second step of the sampler times the number of steps, and
// one decoding. Runs two steps; the images are discarded, and no random number of anything else is used. 0 when
// `stop` ended it. Throws what generating throws.
double seconds_per_batch(model::ModelBundle& bundle, const model::GenerateOptions& options, const std::string& prompt,
                         std::int64_t batch, const StopFlag& stop);

}  // namespace sdtune::train
