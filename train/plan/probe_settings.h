// What a run that is only timed, or only tried, leaves out.
#pragma once

#include <cstdint>

#include "train/config/train_config.h"

namespace sdtune::train {

// Turns off all that reaches beyond the run's own folder: trackers, uploads, commands, webhooks, folders of class
// images, also those of single subjects. No more than `class_images` of them are generated for each, and none for
// validation or the report.
void isolate_probe(TrainConfig& config, std::int64_t class_images);

}  // namespace sdtune::train
