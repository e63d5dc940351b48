// The parts of `sdtune prove`, one function each. They throw nothing for what goes wrong on the device: that is a
// failed part.
#pragma once

#include <optional>
#include <string>

#include "train/prove/prove_context.h"

namespace sdtune::train {

// Our operators and kernels against LibTorch's.
PartResult kernels_part(const ProveContext& context);

// A training step through train_step in one number format ("no", "bf16", "fp16"), against the same stated plainly on
// the CPU.
PartResult parity_part(const ProveContext& context, const std::string& part, const std::string& mixed_precision);

// Ranks that train together against one process with the same effective batch: NCCL with one rank and with every GPU;
// two ranks of Gloo on a CPU.
PartResult ranks_part(const ProveContext& context);

// Steps by CUDA graphs (cuda_graphs) against the same steps eagerly: losses and norms; time and memory of both.
PartResult graphs_part(const ProveContext& context);

// A short DreamBooth run: the loss on the photos, with fixed noise, must fall.
PartResult dreambooth_part(const ProveContext& context);

// That run's memory and time against `sdtune plan --probe`.
PartResult plan_part(const ProveContext& context);

// Diffusers in a Python of its own: its UNet and torch.optim.AdamW on the recorded steps, and time and memory of a step
// of both.
PartResult diffusers_part(const ProveContext& context);

// The record of a few steps in work/NAME, made unless an earlier call made it. Unset where it is there, else why it is
// not.
std::optional<PartResult> ensure_steps(const ProveContext& context, const std::string& part, const std::string& name,
                                       const std::filesystem::path& config);

}  // namespace sdtune::train
