#include "train/precision/compute_dtype.h"

#include "model/base/error.h"

namespace sdtune::train {

torch::Dtype compute_dtype(const std::string& mixed_precision) {
  if (mixed_precision == "no") return torch::kFloat32;
  if (mixed_precision == "fp16") return torch::kFloat16;
  if (mixed_precision == "bf16") return torch::kBFloat16;
  throw ConfigError("mixed_precision", "unknown (got " + mixed_precision + "; allowed: no, fp16, bf16)");
}

}  // namespace sdtune::train
