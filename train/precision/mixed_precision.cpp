#include "train/precision/mixed_precision.h"

#include "model/machine/compute_dtype.h"

namespace sdtune::train {

bool is_left_to_device(const std::string& asked) {
  return asked == "default" || asked == "auto";
}

std::string resolve_mixed_precision(const std::string& asked, torch::Device device, const std::string& recorded) {
  if (!is_left_to_device(asked)) return asked;
  if (!recorded.empty()) return recorded;
  switch (model::choose_dtype(asked, device, model::ComputeUse::kTrain, "mixed_precision")) {
    case torch::kBFloat16:
      return "bf16";
    case torch::kFloat16:
      return "fp16";
    default:
      return "no";
  }
}

}  // namespace sdtune::train
