// Options whose defaults depend on the base, on the run folder or on the checkpoint that a run resumes from.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/train_config.h"

namespace sdtune::train {

// Fills in resolution (`base_resolution`, px, where it is not given), class_data_dir and output.
void resolve_options(TrainConfig& config, std::int64_t base_resolution);

// Sets gradient_accumulation_steps so that `ranks` ranks keep the effective batch of a checkpoint, in images a step.
// Returns a note for the user, empty where nothing changed. Throws ConfigError where that batch is no multiple
// of what the ranks compute at once.
std::string keep_effective_batch(TrainConfig& config, std::int64_t ranks, std::int64_t effective_batch);

}  // namespace sdtune::train
