#include "model/pipeline/guidance.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace sdtune::model {
namespace {

torch::Tensor deviation_per_sample(const torch::Tensor& batch) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(batch.dim() - 1));
  std::iota(dims.begin(), dims.end(), 1);
  return batch.std(torch::IntArrayRef(dims), /*unbiased=*/true, /*keepdim=*/true);
}

}  // namespace

torch::Tensor guided_prediction(const torch::Tensor& predictions, double scale, double rescale) {
  const std::vector<torch::Tensor> halves = predictions.chunk(2);
  const torch::Tensor& unconditional = halves[0];
  const torch::Tensor& conditional = halves[1];
  const torch::Tensor guided = unconditional + scale * (conditional - unconditional);
  if (rescale <= 0) return guided;
  const torch::Tensor rescaled = guided * (deviation_per_sample(conditional) / deviation_per_sample(guided));
  return rescale * rescaled + (1 - rescale) * guided;
}

}  // namespace sdtune::model
