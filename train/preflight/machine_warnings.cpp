#include "train/preflight/machine_warnings.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/core/cuda_driver.h"
#include "model/core/device.h"
#include "model/core/gpu_choice.h"
#include "model/machine/compute_dtype.h"
#include "model/machine/control_groups.h"
#include "train/config/preset_memory.h"
#include "train/dist/rank_env.h"
#include "train/precision/mixed_precision.h"

namespace sdtune::train {

namespace {

std::string gibibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

}  // namespace

std::optional<Problem> memory_warning(const TrainConfig& config, std::uint64_t memory_bytes) {
  const auto memory = static_cast<std::int64_t>(memory_bytes);
  const std::optional<PresetNeed> need = preset_need(config);
  if (!need || need->bytes <= usable_bytes(memory)) return std::nullopt;
  const std::optional<PresetNeed> smaller = smaller_preset(config);
  const std::string hint = smaller && smaller->bytes <= usable_bytes(memory)
                               ? "--config " + smaller->preset + " needs " + gibibytes(smaller->bytes)
                               : "sdtune plan with the same options says what needs less";
  return Problem{"device",
                 "has " + gibibytes(memory) + " of memory, and the values of " + need->preset + " need " +
                     gibibytes(need->bytes) + " by calculation",
                 hint};
}

std::optional<Problem> format_warning(const TrainConfig& config, const std::string& recorded,
                                      const model::CudaDeviceInfo& gpu) {
  const bool is_left = is_left_to_device(config.precision.mixed_precision);
  const std::string& format = is_left ? recorded : config.precision.mixed_precision;
  if (format != "bf16" || model::computes_bfloat16(gpu)) return std::nullopt;
  const std::string hint = recorded.empty() ? "mixed_precision: default is fp16 there"
                                            : "a resumed run keeps its format: take a GPU from compute capability 8.0";
  return Problem{"mixed_precision",
                 "is bf16, for which " + gpu.name + " (compute capability " + model::capability_text(gpu.capability) +
                     ") has no instructions: steps are slow or fail",
                 hint};
}

std::optional<Problem> threads_warning(std::int64_t threads, std::optional<double> quota) {
  const std::int64_t cores = quota ? std::max<std::int64_t>(1, std::lround(*quota)) : threads;
  if (threads <= cores) return std::nullopt;
  return Problem{
      "device",
      fmt::format("computes with {} threads, which wait for each other: the container's quota of cores is {}", threads,
                  cores),
      fmt::format("set OMP_NUM_THREADS={}", cores)};
}

std::vector<Problem> machine_warnings(const TrainConfig& config, const std::string& recorded) {
  std::vector<Problem> warnings;
  if (const std::string text = model::device_warning(config.run.device); !text.empty()) {
    warnings.push_back({"device", text, ""});
  }
  try {
    const torch::Device device =
        model::find_device(device_for_rank(config.run.device, read_rank_env(), model::has_usable_gpu()), "device");
    if (!device.is_cuda()) {
      const std::string note = model::unknown_processor_note(config.precision.mixed_precision, device);
      if (!note.empty()) warnings.push_back({"mixed_precision", note, ""});
      const auto quota = model::quota_of_cores(model::system_files());
      if (const auto threads = threads_warning(at::get_num_threads(), quota)) warnings.push_back(*threads);
      return warnings;
    }
    const auto index =
        static_cast<std::size_t>(static_cast<unsigned char>(device.index()));  // not negative: find_device chose it
    const model::CudaDeviceInfo& gpu = model::cuda_driver().devices.at(index);
    const std::optional<Problem> memory = memory_warning(config, gpu.memory_bytes);
    if (memory) warnings.push_back(*memory);
    const std::optional<Problem> format = format_warning(config, recorded, gpu);
    if (format) warnings.push_back(*format);
  } catch (const Error&) {
    return warnings;  // preflight refuses such a device
  }
  return warnings;
}

}  // namespace sdtune::train
