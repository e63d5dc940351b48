// What presets need on a GPU, and how much of a GPU there is to be had: one rule for `check`, `train`, `plan` and the
// table of docs/weights.md (scripts/make_memory_table.py reads the share from here).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/config/train_config.h"

namespace sdtune::train {

// A driver and fragments take their part: what is not used is not to be had either.
inline constexpr double kUsableShare = 0.95;

std::int64_t usable_bytes(std::int64_t memory_bytes);

struct PresetNeed {
  std::string preset;      // full_sd15.yaml
  std::int64_t bytes = 0;  // as `sdtune plan` calculates it
};

// Of the run's preset. Unset where it is not known (configs/preset_memory.yaml), or the run sets options that decide
// it themselves.
std::optional<PresetNeed> preset_need(const TrainConfig& config);

// Of the preset for a GPU with 16 GB that stands beside the run's; unset likewise.
std::optional<PresetNeed> smaller_preset(const TrainConfig& config);

}  // namespace sdtune::train
