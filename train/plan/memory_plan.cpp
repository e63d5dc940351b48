#include "train/plan/memory_plan.h"

#include <algorithm>
#include <utility>

#include "train/optim/state_size.h"
#include "train/run/memory_use.h"
#include "train/shard/shard_layout.h"

namespace sdtune::train {
namespace {

// CUDA's context, the kernels of LibTorch, cuBLAS and cuDNN, and their workspaces. An assumption: no GPU was there to
// measure it.
constexpr std::int64_t kGpuDriver = std::int64_t{900} << 20;

std::int64_t bytes_of(const torch::nn::Module& module) {
  std::int64_t bytes = 0;
  for (const torch::Tensor& weight : module.parameters()) bytes += static_cast<std::int64_t>(weight.nbytes());
  return bytes;
}

// A GPU holds the autoencoder, and computes with it, in the compute dtype too, but for SDXL's in fp16, which overflows.
// The bundle's is float32, and so are the passes that were traced: `float32_bytes` of either, as large as they are
// there.
std::int64_t vae_bytes(std::int64_t float32_bytes, const TrainConfig& config, const model::ModelBundle& bundle,
                       bool on_gpu) {
  const std::string& precision = config.precision.mixed_precision;
  const bool in_half = on_gpu && (precision == "bf16" || (precision == "fp16" && !bundle.is_xl()));
  return float32_bytes / (in_half ? 2 : 1);
}

std::vector<MemoryPart> weights_of(const TrainConfig& config, const model::ModelBundle& bundle, bool on_gpu) {
  std::vector<MemoryPart> parts = {{"weights of unet", bytes_of(*bundle.unet)},
                                   {"weights of vae", vae_bytes(bytes_of(*bundle.vae), config, bundle, on_gpu)},
                                   {"weights of text_encoder", bytes_of(*bundle.text_encoder)}};
  if (bundle.is_xl()) parts.push_back({"weights of text_encoder_2", bytes_of(*bundle.text_encoder_2)});
  return parts;
}

std::int64_t count_of(const std::vector<ModuleParameter>& parameters) {
  std::int64_t count = 0;
  for (const ModuleParameter& parameter : parameters) count += parameter.weight.numel();
  return count;
}

// Of the UNet's trainable parameters, once more (frozen_copy).
std::int64_t frozen_bytes(const ModelTrace& trace) {
  std::int64_t bytes = 0;
  for (const torch::Tensor& weight : trace.bundle().unet->parameters()) {
    if (weight.requires_grad()) bytes += static_cast<std::int64_t>(weight.nbytes());
  }
  return bytes;
}

std::int64_t state_bytes(const TrainConfig& config, const std::vector<ModuleParameter>& parameters) {
  std::int64_t bytes = 0;
  for (const ModuleParameter& parameter : parameters) {
    bytes += optimizer_state_bytes(config.optim, parameter.weight.sizes());
  }
  return bytes;
}

// What the rank that keeps the most updates; all of it where nothing is shared out.
std::vector<ModuleParameter> own_parameters(const TrainConfig& config, const ModelTrace& trace, std::int64_t ranks) {
  const std::vector<ModuleParameter>& trained = trace.trained();
  if (ranks == 1 || config.dist.shard == "none") return trained;
  const std::vector<ShardCost> costs = shard_costs(config.optim, trained, config.precision.mixed_precision != "no");
  const std::vector<std::int64_t> owners = assign_owners(costs, ranks);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < costs.size(); ++i) bytes[static_cast<std::size_t>(owners[i])] += costs[i].states;
  const std::int64_t most = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
  std::vector<ModuleParameter> own;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (owners[i] == most) own.push_back(trained[i]);
  }
  return own;
}

// What there is from the first step to the last.
std::vector<MemoryPart> kept_in_training(const TrainConfig& config, const ModelTrace& trace, const TrainedBatch& batch,
                                         bool on_gpu) {
  const std::vector<ModuleParameter> own = own_parameters(config, trace, batch.ranks);
  const bool frees_gradients = batch.ranks > 1 && config.dist.shard == "gradients";
  const std::int64_t count = count_of(own), gradients = frees_gradients ? count : count_of(trace.trained());
  const bool is_float32 = config.precision.mixed_precision == "no";
  const bool sums_in_float32 = on_gpu ? batch.gpu_sums_in_float32 : batch.sums_in_float32;
  const std::int64_t gradient = is_float32 || sums_in_float32 ? 4 : 2;  // bytes of a number
  std::vector<MemoryPart> parts = weights_of(config, trace.bundle(), on_gpu);
  if (!is_float32) parts.push_back({"float32 masters", 4 * count});
  parts.push_back({"gradients", gradient * gradients});
  parts.push_back({"states of " + config.optim.chosen_optimizer(), state_bytes(config, own)});
  const std::int64_t frozen = config.objective.dco_beta ? frozen_bytes(trace) : 0;
  if (frozen > 0) parts.push_back({"weights of unet before training", frozen});
  if (config.optim.use_ema && !(on_gpu && config.optim.offload_ema)) parts.push_back({"averaged weights", 4 * count});
  return parts;
}

// Parts that steps do not use leave a GPU (build_run's rest_unused_parts).
void leave_out_resting(const TrainConfig& config, std::vector<MemoryPart>& parts) {
  std::erase_if(parts, [&](const MemoryPart& part) {
    if (part.name == "weights of vae") return config.data.caches_latents();
    return part.name.starts_with("weights of text_encoder") && !config.run.train_text_encoder;
  });
}

MemoryPhase training_phase(const TrainConfig& config, const ModelTrace& trace, const TrainedBatch& batch,
                           const PassCost& training, bool on_gpu) {
  MemoryPhase phase{"training", kept_in_training(config, trace, batch, on_gpu)};
  if (on_gpu) leave_out_resting(config, phase.parts);
  std::int64_t saved = 0;
  for (const MemoryPart& part : activations_by_part(training)) saved += part.bytes;
  phase.parts.push_back({"activations kept for backward", saved});
  phase.parts.push_back({"working memory of backward", std::max<std::int64_t>(0, training.peak_bytes() - saved)});
  if (!on_gpu && training.resident_bytes > training.peak_bytes()) {
    phase.parts.push_back({"gaps between them", training.resident_bytes - training.peak_bytes()});
  }
  return phase;
}

// Images that the model generates; they are decoded one by one.
MemoryPart generating(const Generation& generation, const TrainConfig& config, const ModelTrace& trace,
                      const TrainedBatch& batch, const PassCost& denoising, const PassCost& decoding, bool on_gpu) {
  const std::int64_t factor = trace.bundle().vae_factor();
  const std::int64_t pixels = generation.at_once * batch.height * batch.width * factor * factor;
  const std::int64_t decoded = 2 * 3 * 4 * pixels;  // as they came, and side by side
  const std::int64_t decoder = vae_bytes(decoding.peak_bytes(), config, trace.bundle(), on_gpu);
  return {"generating", std::max(denoising.peak_bytes(), decoder + decoded)};
}

// Beside which images are generated.
std::vector<MemoryPart> kept_while_generating(const Generation& generation, const TrainConfig& config,
                                              const ModelTrace& trace, const TrainedBatch& batch, bool on_gpu) {
  if (!generation.in_training) return weights_of(config, trace.bundle(), on_gpu);
  std::vector<MemoryPart> kept = kept_in_training(config, trace, batch, on_gpu);
  if (config.optim.use_ema) {
    std::int64_t trained = 0;
    for (const ModuleParameter& parameter : trace.trained()) {
      trained += static_cast<std::int64_t>(parameter.weight.nbytes());
    }
    kept.push_back({"trained weights beside the averages", trained});
  }
  if (!generation.with_base) return kept;
  std::int64_t base = 0;
  for (const MemoryPart& part : weights_of(config, trace.bundle(), on_gpu)) base += part.bytes;
  kept.push_back({"the base, which reads the images", base});
  return kept;
}

MemoryPhase encoding_phase(const TrainConfig& config, const ModelTrace& trace, const RunPasses& passes, bool on_gpu) {
  std::vector<MemoryPart> parts = weights_of(config, trace.bundle(), on_gpu);
  parts.push_back({"encoding", vae_bytes(passes.encoding.peak_bytes(), config, trace.bundle(), on_gpu)});
  return {"encoding photos", std::move(parts)};
}

}  // namespace

std::int64_t MemoryPhase::bytes() const {
  std::int64_t sum = 0;
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

const MemoryPhase& MemoryPlan::highest() const {
  return *std::max_element(phases.begin(), phases.end(), [](const MemoryPhase& left, const MemoryPhase& right) {
    return left.bytes() < right.bytes();
  });
}

std::vector<MemoryPart> activations_by_part(const PassCost& training) {
  std::vector<MemoryPart> parts;
  std::int64_t before = 0;
  for (const PassPiece& piece : training.pieces) {
    if (piece.name.starts_with("backward")) break;
    parts.push_back({piece.name, std::max<std::int64_t>(0, piece.end_bytes - before)});
    before = piece.end_bytes;
  }
  return parts;
}

void MemoryPlan::add_program(const MemoryPart& program) {
  for (MemoryPhase& phase : phases) phase.parts.insert(phase.parts.begin(), program);
}

MemoryPart program_on_cpu() {
  give_back_memory();
  return {"program and libraries", resident_bytes()};
}

MemoryPart program_on_gpu() {
  return {"driver and kernels (assumed)", kGpuDriver};
}

RunPasses trace_passes(const TrainConfig& config, ModelTrace& trace, const TrainedBatch& batch) {
  RunPasses passes;
  const PassShape one{1, batch.height, batch.width};
  const PassShape all{batch.samples, batch.height, batch.width};
  passes.training = trace.training(all, batch.recomputed);
  if (config.objective.dco_beta) passes.base = trace.denoising({batch.photos, batch.height, batch.width});
  passes.encoding = trace.encoding(one);
  passes.generations = generations_of(config);
  for (const Generation& generation : passes.generations) {
    passes.denoising.push_back(trace.denoising({generation.rows, batch.height, batch.width}));
  }
  if (!passes.generations.empty()) passes.decoding = trace.decoding(one);
  return passes;
}

MemoryPlan plan_memory(const TrainConfig& config, const ModelTrace& trace, const TrainedBatch& batch,
                       const RunPasses& passes, bool on_gpu) {
  MemoryPlan plan;
  plan.phases.push_back(encoding_phase(config, trace, passes, on_gpu));
  const auto add_generations = [&](bool in_training) {
    for (std::size_t i = 0; i < passes.generations.size(); ++i) {
      const Generation& generation = passes.generations[i];
      if (generation.in_training != in_training) continue;
      MemoryPhase phase{generation.phase, kept_while_generating(generation, config, trace, batch, on_gpu)};
      phase.parts.push_back(generating(generation, config, trace, batch, passes.denoising[i], passes.decoding, on_gpu));
      plan.phases.push_back(std::move(phase));
    }
  };
  add_generations(false);
  plan.phases.push_back(training_phase(config, trace, batch, passes.training, on_gpu));
  add_generations(true);
  return plan;
}

}  // namespace sdtune::train
