// What a run will take, before anything is started: memory from the model's layers, work from its operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/config/train_config.h"
#include "train/plan/memory_plan.h"

namespace sdtune::train {

struct PlanRequest {
  TrainConfig config;
  std::string family;  // sd15, sd21, sdxl: the published model, without its files; empty: config's base
  std::optional<std::int64_t> photos = {};  // instead of those in the configuration's folders
  bool find_savings = true;                 // takes as long again for large models
  std::int64_t ranks = 1;                   // memory is that of one of them
};

// What the numbers of the plan are of.
struct PlannedRun {
  TrainConfig config;         // resolution, steps and mixed_precision (on a GPU) resolved
  std::string cpu_precision;  // mixed_precision on a CPU, where it is another one; else ""
  std::string model;          // base or family
  std::int64_t photos = 0, class_images = 0;
  std::int64_t generated_class_images = 0;  // those that are not there yet, the user's or an earlier run's
  std::int64_t epoch_photos = 0;            // shown in one epoch, repeats counted
  std::int64_t batch = 1;                   // effective, of all ranks
  std::int64_t ranks = 1;
  std::int64_t total_steps = 0;
  std::int64_t trainable_parameters = 0, total_parameters = 0;

  double epochs() const;
};

// Floating-point operations of all ranks together.
struct PlannedWork {
  double step = 0;               // one optimizer step, with the autoencoder where latents are not cached, and with text
                                 // encoders where they are trained
  double class_images = 0;       // all of them
  double evaluation_images = 0;  // validation images, and those of identity evaluations, all of them
  double encoding = 0;           // photos and class images, once; 0 where each step encodes its own
  double total = 0;
};

// The same run with options that need less memory and change no number beyond rounding, or, from 8-bit states on,
// little.
struct Saving {
  std::string options;                        // "micro_batch: 1 and gradient_checkpointing"
  std::int64_t cpu_bytes = 0, gpu_bytes = 0;  // the highest phase
};

struct RunPlan {
  PlannedRun run;
  PlannedWork work;
  MemoryPlan on_cpu, on_gpu;
  std::vector<MemoryPart> activations;  // of one micro-batch, by part of the model
  std::vector<Saving> savings;          // each with those before it
};

// Reads configs and photo folders; weights only where an earlier run has generated class images, whose settings name
// the base by its content. Throws ConfigError, WeightError and DataError for what is wrong with them; a configuration
// without photos needs `photos`.
RunPlan plan_run(const PlanRequest& request);

}  // namespace sdtune::train
