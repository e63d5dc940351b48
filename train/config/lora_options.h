// The options of low-rank training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct LoraOptions {
  std::int64_t rank = 16;
  std::optional<double> lora_alpha;  // unset: the rank, so that the branches count in full
  double lora_dropout = 0.0;
  std::vector<std::string> lora_layers = {"to_q", "to_k", "to_v", "to_out.0", "q_proj", "k_proj", "v_proj", "out_proj"};

  double alpha() const { return lora_alpha.value_or(static_cast<double>(rank)); }

  TrainFieldList fields();
};

}  // namespace sdtune::train
