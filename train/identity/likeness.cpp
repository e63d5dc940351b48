#include "train/identity/likeness.h"

#include <cmath>
#include <limits>

namespace sdtune::train {

torch::Tensor mean_embedding(const torch::Tensor& embeddings) {
  TORCH_CHECK(embeddings.dim() == 2 && embeddings.size(0) > 0, "a mean of no embeddings");
  const torch::Tensor mean = embeddings.mean(0);
  return mean / mean.norm().clamp_min(1e-6);
}

double area_under_curve(const torch::Tensor& same, const torch::Tensor& different) {
  TORCH_CHECK(same.numel() > 0 && different.numel() > 0, "no likenesses to compare");
  const torch::Tensor sorted = std::get<0>(different.flatten().to(torch::kFloat64).sort());
  const torch::Tensor values = same.flatten().to(torch::kFloat64);
  const torch::Tensor below = torch::searchsorted(sorted, values, /*out_int32=*/false, /*right=*/false);
  const torch::Tensor below_or_equal = torch::searchsorted(sorted, values, /*out_int32=*/false, /*right=*/true);
  const double wins = 0.5 * (below + below_or_equal).to(torch::kFloat64).sum().item<double>();
  return wins / (static_cast<double>(values.numel()) * static_cast<double>(sorted.numel()));
}

double threshold_at(const torch::Tensor& different, double share) {
  TORCH_CHECK(different.numel() > 0, "no likenesses of different people");
  const torch::Tensor sorted =
      std::get<0>(different.flatten().to(torch::kFloat64).sort(/*dim=*/0, /*descending=*/true));
  const auto passing = static_cast<std::int64_t>(std::floor(share * static_cast<double>(sorted.numel())));
  if (passing >= sorted.numel()) return -std::numeric_limits<double>::infinity();
  // Just above the first that must fail.
  return std::nextafter(sorted[passing].item<double>(), std::numeric_limits<double>::infinity());
}

torch::Tensor are_accepted(const torch::Tensor& likenesses, double threshold) {
  return likenesses.to(torch::kFloat64).ge(threshold);
}

double share_accepted(const torch::Tensor& likenesses, double threshold) {
  TORCH_CHECK(likenesses.numel() > 0, "no likenesses");
  return are_accepted(likenesses, threshold).to(torch::kFloat64).mean().item<double>();
}

}  // namespace sdtune::train
