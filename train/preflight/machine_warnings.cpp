#include "train/preflight/machine_warnings.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>

#include "model/core/cuda_driver.h"
#include "model/core/device.h"
#include "model/files/install_paths.h"
#include "model/options/settings.h"
#include "train/dist/rank_env.h"

namespace sdtune::train {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
// Options that change what a run needs.
constexpr std::array kMemoryOptions = {"micro_batch",
                                       "gradient_checkpointing",
                                       "use_8bit_adam",
                                       "optimizer",
                                       "train_batch_size",
                                       "resolution",
                                       "mixed_precision",
                                       "train_text_encoder",
                                       "use_ema",
                                       "rank",
                                       "half_precision_gradient_sums"};

// Preset -> GiB that it needs on a GPU, as `sdtune plan` has it.
std::map<std::string, double> read_preset_memory() {
  std::map<std::string, double> needs;
  const std::filesystem::path file = find_shared_file("configs/preset_memory.yaml");
  if (file.empty()) return needs;
  std::vector<Problem> problems;
  for (const Setting& setting : settings_from_yaml(file, problems))
    needs[setting.name] = std::stod(setting.items.front());
  return needs;
}

// Whether all these options have the values of the preset or sdtune's own.
bool decides_nothing_itself(const TrainConfig& config) {
  for (const char* option : kMemoryOptions) {
    const auto origin = config.origins.find(option);
    if (origin != config.origins.end() && !origin->second.starts_with(config.preset + ":")) return false;
  }
  return true;
}

}  // namespace

std::optional<Problem> memory_warning(const TrainConfig& config, std::uint64_t memory_bytes) {
  static const std::map<std::string, double> needs = read_preset_memory();
  const std::filesystem::path preset = config.preset;
  const auto needed = needs.find(preset.filename().string());
  const double memory = static_cast<double>(memory_bytes) / kGiB;
  if (needed == needs.end() || needed->second <= memory || !decides_nothing_itself(config)) return std::nullopt;
  const std::string smaller = preset.stem().string() + "_16gb.yaml";
  const auto fits = needs.find(smaller);
  const std::string hint = fits != needs.end() && fits->second <= memory
                               ? "--config " + smaller + " needs " + fmt::format("{:.1f} GiB", fits->second)
                               : "sdtune plan with the same options says what needs less";
  return Problem{"device",
                 fmt::format("has {:.1f} GiB of memory, and the values of {} need {:.1f} GiB by calculation", memory,
                             preset.filename().string(), needed->second),
                 hint};
}

std::vector<Problem> machine_warnings(const TrainConfig& config) {
  std::vector<Problem> warnings;
  if (const std::string text = model::device_warning(config.run.device); !text.empty()) {
    warnings.push_back({"device", text, ""});
  }
  try {
    const torch::Device device =
        model::find_device(device_for_rank(config.run.device, read_rank_env(), model::has_usable_gpu()), "device");
    if (!device.is_cuda()) return warnings;
    const auto index =
        static_cast<std::size_t>(static_cast<unsigned char>(device.index()));  // not negative: find_device chose it
    const std::optional<Problem> memory = memory_warning(config, model::cuda_driver().devices.at(index).memory_bytes);
    if (memory) warnings.push_back(*memory);
  } catch (const Error&) {
    return warnings;  // preflight refuses such a device
  }
  return warnings;
}

}  // namespace sdtune::train
