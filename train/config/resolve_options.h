// Options whose defaults depend on the base, on the run folder or on the checkpoint that a run resumes from.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/train_config.h"

namespace sdtune::train {

// What a base says of options that are not given.
struct BaseDefaults {
  std::int64_t resolution = 0;  // px
  double guidance_scale = 0;    // model::default_guidance_scale of its pipeline
};

// Fills in resolution and class_guidance_scale (the base's where they are not given), class_data_dir and output.
// `recorded_guidance`: the class_guidance_scale of the checkpoint that the run resumes from, as YAML has it; "" without
// one. A checkpoint of a version whose default was 7.5 for every base keeps that.
void resolve_options(TrainConfig& config, const BaseDefaults& base, const std::string& recorded_guidance);

// Sets gradient_accumulation_steps so that `ranks` ranks keep the effective batch of a checkpoint, in images a step.
// Returns a note for the user, empty where nothing changed. Throws ConfigError where that batch is no multiple
// of what the ranks compute at once.
std::string keep_effective_batch(TrainConfig& config, std::int64_t ranks, std::int64_t effective_batch);

}  // namespace sdtune::train
