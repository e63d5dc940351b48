#include "train/precision/mixed_precision.h"

#include "model/core/device.h"

namespace sdtune::train {

std::string resolve_mixed_precision(const std::string& asked, torch::Device device, const std::string& recorded) {
  if (asked != "auto") return asked;
  if (!recorded.empty()) return recorded;
  switch (model::fast_dtype(device)) {
    case torch::kBFloat16:
      return "bf16";
    case torch::kFloat16:
      return "fp16";
    default:
      return "no";
  }
}

}  // namespace sdtune::train
