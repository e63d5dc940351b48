// What some steps of training computed, small enough to keep: for comparing two devices, two number formats, or sdtune
// with PyTorch's own modules.
//
// Tensors, all float32 on the CPU but timesteps (int64); k applied steps:
//   losses [k], norms [k]             of each step, the norm before clipping
//   update_errors [k]                 how far the masters' change is from AdamWStatement's, given the step's gradients:
//   relative norm_errors [k]                   how far the stated norm is from that of the gradients, in double:
//   relative gradient.NAME, change.NAME        sampled(): the first step's gradient, and the masters' change over all k
//   steps latents.I, context.I, noise.I [B, ...], timesteps.I [B]   what the I-th step was given, the whole effective
//   batch text_embeds.I, time_ids.I         SDXL
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/weights/safetensors_writer.h"
#include "train/run/run.h"

namespace sdtune::train {

struct StepRecord {
  model::NamedTensors tensors;
  Json facts =
      Json::object();  // device, dtype, ranks, skipped, first_step, reduced_bytes, seconds_a_step, replayed, peak_bytes

  const torch::Tensor* find(const std::string& name) const;
};

// train_step, or in tests a wrong one.
using StepFunction = std::function<torch::Tensor(Run& run, std::uint64_t step)>;

// Takes `count` steps that are applied; steps that the loss scaler discards are counted in `skipped` and have no place
// in the record. Throws NonFiniteError when the run's steps end before.
StepRecord record_steps(Run& run, std::int64_t count, const StepFunction& step);

// What step `step` of a run is given, under the names above with `index` as I.
void keep_inputs(Run& run, std::uint64_t step, std::size_t index, model::NamedTensors& to);

// Up to 2048 numbers of a tensor, evenly spread over it in the order of its shape: float64 on the CPU, flat.
torch::Tensor sampled(const torch::Tensor& tensor);

// Of all numbers together, in double.
double norm_of(const std::vector<torch::Tensor>& tensors);

// FILE.safetensors and FILE.json, the latter last: where it is there, both are whole. `file` has no suffix.
void write_record(const std::filesystem::path& file, const StepRecord& record);
bool has_record(const std::filesystem::path& file);
// Throws WeightError.
StepRecord read_record(const std::filesystem::path& file);

}  // namespace sdtune::train
