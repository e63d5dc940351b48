#include "train/config/preset_memory.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/files/install_paths.h"
#include "model/options/settings.h"

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
                                       "trainable_layers",
                                       "dco_beta",
                                       "use_ema",
                                       "rank",
                                       "half_precision_gradient_sums"};

// Preset -> GiB.
std::map<std::string, double> read_needs() {
  std::map<std::string, double> needs;
  const std::filesystem::path file = find_shared_file("configs/preset_memory.yaml");
  if (file.empty()) return needs;
  std::vector<Problem> problems;
  for (const Setting& setting : settings_from_yaml(file, problems)) {
    const std::string& text = setting.items.front();
    std::from_chars(text.data(), text.data() + text.size(), needs[setting.name]);  // in any locale
  }
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

std::optional<PresetNeed> find_need(const TrainConfig& config, const std::string& preset) {
  static const std::map<std::string, double> needs = read_needs();
  const auto found = needs.find(preset);
  if (found == needs.end() || !decides_nothing_itself(config)) return std::nullopt;
  return PresetNeed{preset, static_cast<std::int64_t>(found->second * kGiB)};
}

}  // namespace

std::int64_t usable_bytes(std::int64_t memory_bytes) {
  return static_cast<std::int64_t>(kUsableShare * static_cast<double>(memory_bytes));
}

std::optional<PresetNeed> preset_need(const TrainConfig& config) {
  return find_need(config, std::filesystem::path(config.preset).filename().string());
}

std::optional<PresetNeed> smaller_preset(const TrainConfig& config) {
  return find_need(config, std::filesystem::path(config.preset).stem().string() + "_16gb.yaml");
}

}  // namespace sdtune::train
