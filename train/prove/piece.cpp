#include "train/prove/piece.h"

#include <ATen/core/grad_mode.h>
#include <dlfcn.h>

#include <cmath>
#include <memory>
#include <optional>

#include "model/base/environment.h"
#include "model/core/device.h"
#include "model/core/kernel_access.h"
#include "model/core/tf32_scope.h"
#include "model/files/file_system.h"
#include "train/optim/optimizer_kernels.h"
#include "train/preflight/preflight.h"
#include "train/prove/kernel_comparison.h"
#include "train/prove/plain_steps.h"
#include "train/prove/record_comparison.h"
#include "train/prove/step_record.h"
#include "train/run/build_run.h"
#include "train/run/memory_use.h"
#include "train/run/train_step.h"

namespace sdtune::train {

namespace {

// Our CUDA kernels of a library that was compiled for the CPU.
class KernelLibrary {
 public:
  explicit KernelLibrary(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw ConfigError("SDTUNE_PROVE_KERNELS", std::string("does not load: ") + dlerror());
    const auto model_table = reinterpret_cast<const model::CudaTable* (*)()>(dlsym(library, model::kCudaTableSymbol));
    const auto optimizer_table = reinterpret_cast<const OptimizerTable* (*)()>(dlsym(library, kOptimizerTableSymbol));
    if (model_table == nullptr || optimizer_table == nullptr) {
      throw ConfigError("SDTUNE_PROVE_KERNELS", "holds no kernels of ours (got " + path + ")");
    }
    model_.emplace(model_table());
    optimizers_.emplace(optimizer_table());
  }

 private:
  std::optional<model::KernelStandIn> model_;
  std::optional<OptimizerStandIn> optimizers_;
};

void prove_kernels(const PieceRequest& request) {
  const torch::Device device = model::parse_device(request.config.run.device, "device");
  const model::Tf32Scope tf32(false);
  const std::string given = environment_variable("SDTUNE_PROVE_KERNELS");
  std::optional<KernelLibrary> library;
  if (!given.empty()) {
    if (!device.is_cpu()) throw ConfigError("SDTUNE_PROVE_KERNELS", "is for tests on a CPU", "unset it");
    library.emplace(given);
  }
  const bool has_kernels = model::kernel_table(device) != nullptr;
  const std::vector<Check> checks = compare_kernels(device, has_kernels);
  write_file_atomically(real_file_system(), request.result, checks_json(checks).dump(1) + "\n");
}

// Every update 5 % too large.
torch::Tensor wrong_step(Run& run, std::uint64_t step) {
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& master : run.optimizer->masters()) before.push_back(master.clone());
  const torch::Tensor numbers = train_step(run, step);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < before.size(); ++i) {
    torch::Tensor master = run.optimizer->masters()[i];
    master.add_(master - before[i], 0.05);
  }
  run.optimizer->refresh_weights();
  return numbers;
}

void take_steps(const PieceRequest& request, const PortraitReaderSource& readers, const StopFlag& stop) {
  const TrainConfig& config = request.config;
  const Preflight preflight = run_preflight(config, readers, PhotoUse::kTrain);
  refuse_problems(preflight);
  const RankEnv ranks = read_rank_env();
  const std::string text = device_for_rank(config.run.device, ranks, model::has_usable_gpu());
  const torch::Device device = model::parse_device(text, "device");
  const model::Tf32Scope tf32(config.precision.allow_tf32);
  const bool is_wrong = planted_fault(device.is_cpu() ? "cpu" : "cuda") == "step";
  const std::unique_ptr<Run> run =
      build_run(config, connect_ranks(ranks, device, config.dist, "prove"), device, preflight, {}, stop);
  const StepRecord record = record_steps(*run, request.count, is_wrong ? wrong_step : train_step);
  if (run->group->is_first()) write_record(request.record, record);
  run->group->barrier();
}

// Gradients, both moments and what clipping makes anew, float32 each, and a gigabyte for activations and the program.
void require_memory(const Run& run) {
  double numbers = 0;
  for (const torch::Tensor& weight : run.bundle.unet->parameters()) numbers += static_cast<double>(weight.numel());
  const double needed = 16 * numbers + 1e9, free = static_cast<double>(free_memory_bytes());
  if (free >= needed) return;
  throw OutOfMemoryError("memory", "the reference in float32 on the CPU needs about " +
                                       std::to_string(std::llround(needed / 1e9)) +
                                       " GB (free: " + std::to_string(std::llround(free / 1e9)) + " GB)");
}

void compare_with_reference(const PieceRequest& request, const PortraitReaderSource& readers, const StopFlag& stop) {
  TrainConfig config = request.config;
  config.run.device = "cpu";
  config.precision.mixed_precision = "no";
  const StepRecord record = read_record(request.record);
  const auto dtype = record.facts.at("dtype").get<std::string>();
  const Preflight preflight = run_preflight(config, readers, PhotoUse::kTrain);
  refuse_problems(preflight);
  const std::unique_ptr<Run> run =
      build_prepared_run(config, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop);
  require_memory(*run);
  run->loss = std::make_unique<DiffusionLoss>(model::NoiseSchedule::from_config(run->bundle.scheduler_config),
                                              model::prediction_type_of(run->bundle.scheduler_config), config.objective,
                                              static_cast<std::uint64_t>(config.run.seed));
  std::vector<Check> checks = check_inputs(input_errors(*run, record), dtype);
  for (const std::vector<Check>& more :
       {compare_records(record, plain_steps(*run, record), dtype), check_update(record)}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  write_file_atomically(real_file_system(), request.result, checks_json(checks).dump(1) + "\n");
}

}  // namespace

std::string planted_fault(const std::string& device) {
  std::string fault = environment_variable("SDTUNE_PROVE_FAULT");
  if (fault.empty()) return fault;
  if (fault != "step" && fault != "plan") {
    throw ConfigError("SDTUNE_PROVE_FAULT", "no such fault (got " + fault + "; allowed: step, plan)", "unset it");
  }
  if (device != "cpu") throw ConfigError("SDTUNE_PROVE_FAULT", "is for tests with --device cpu", "unset it");
  return fault;
}

void run_piece(const PieceRequest& request, const PortraitReaderSource& portrait_readers, const StopFlag& stop) {
  if (request.kind == "kernels") {
    prove_kernels(request);
  } else if (request.kind == "steps") {
    take_steps(request, portrait_readers, stop);
  } else {
    compare_with_reference(request, portrait_readers, stop);
  }
}

}  // namespace sdtune::train
