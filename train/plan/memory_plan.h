// What a training run holds in memory, part by part, in each of its phases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/plan/generation_phases.h"
#include "train/plan/model_trace.h"

namespace sdtune::train {

struct MemoryPart {
  std::string name;
  std::int64_t bytes = 0;
};

struct MemoryPhase {
  std::string name;  // training, encoding photos, or one of Generation
  std::vector<MemoryPart> parts;

  std::int64_t bytes() const;
};

// What goes through the UNet at once, and how.
struct TrainedBatch {
  std::int64_t photos = 1;             // of a micro-batch
  std::int64_t samples = 1;            // photos and the class images that go with them
  bool sums_in_float32 = false;        // gradients of a half-precision run, where a step has several micro-batches
  bool gpu_sums_in_float32 = false;    // the same on a GPU, which may split a batch that is to fit
  std::int64_t height = 0, width = 0;  // latent cells
  bool recomputed = false;             // gradient_checkpointing
  std::int64_t ranks = 1;              // the plan is of the one that keeps the most
};

// Each pass of a run, at the sizes that it will have.
struct RunPasses {
  PassCost training;  // of one micro-batch
  PassCost base;      // of its photos through the base, without gradients; nothing without dco_beta
  PassCost encoding;  // of one photo
  // Of images that the model generates: one call of the UNet for each of generations_of(config), and the decoding of
  // one image.
  std::vector<Generation> generations;
  std::vector<PassCost> denoising;
  PassCost decoding;
};

RunPasses trace_passes(const TrainConfig& config, ModelTrace& trace, const TrainedBatch& batch);

struct MemoryPlan {
  std::vector<MemoryPhase> phases;

  const MemoryPhase& highest() const;
  // What is there before a run is, in each phase.
  void add_program(const MemoryPart& program);
};

// This process, once everything that was traced is gone: of the libraries it has loaded what training will.
MemoryPart program_on_cpu();
// The driver and the kernels.
MemoryPart program_on_gpu();

// Without the program. What a GPU run keeps in the machine's memory is left out there.
MemoryPlan plan_memory(const TrainConfig& config, const ModelTrace& trace, const TrainedBatch& batch,
                       const RunPasses& passes, bool on_gpu);

// Of the activations that a micro-batch leaves for its backward pass, by part of the model.
std::vector<MemoryPart> activations_by_part(const PassCost& training);

}  // namespace sdtune::train
