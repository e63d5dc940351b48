#include "train/portrait/evaluate/frechet.h"

#include <ATen/ops/linalg_eigh.h>

#include <algorithm>

namespace sdtune::train::evaluate {
namespace {

constexpr std::int64_t kDirections = 32;
constexpr double kSmallest = 1e-12;  // variance below which a direction is taken for constant

torch::Tensor covariance(const torch::Tensor& rows) {
  const torch::Tensor centered = rows - rows.mean(0, /*keepdim=*/true);
  return torch::matmul(centered.t(), centered) / static_cast<double>(rows.size(0) - 1);
}

// The symmetric root of a symmetric positive matrix.
torch::Tensor root(const torch::Tensor& matrix) {
  const auto [values, vectors] = at::linalg_eigh(matrix);
  return torch::matmul(vectors * values.clamp_min(0).sqrt().unsqueeze(0), vectors.t());
}

// [F, k]: features times it are the reference's main directions at variance 1.
torch::Tensor whitening(const torch::Tensor& reference) {
  const auto [values, vectors] = at::linalg_eigh(covariance(reference));  // ascending
  const std::int64_t count = std::min(kDirections, reference.size(0) - 1);
  const std::int64_t first = std::max<std::int64_t>(0, values.size(0) - count);
  return vectors.slice(1, first) / values.slice(0, first).clamp_min(kSmallest).sqrt().unsqueeze(0);
}

}  // namespace

double frechet_distance(const torch::Tensor& features, const torch::Tensor& reference) {
  TORCH_CHECK(features.size(0) > 1 && reference.size(0) > 1, "a distance of sets needs two images each");
  const torch::Tensor directions = whitening(reference.to(torch::kFloat64));
  const torch::Tensor a = torch::matmul(features.to(torch::kFloat64), directions);
  const torch::Tensor b = torch::matmul(reference.to(torch::kFloat64), directions);
  const torch::Tensor cov_a = covariance(a), root_b = root(covariance(b));
  const torch::Tensor cross = root(torch::matmul(torch::matmul(root_b, cov_a), root_b));
  const double means = (a.mean(0) - b.mean(0)).pow(2).sum().item<double>();
  const double spreads = (cov_a.trace() + covariance(b).trace() - 2 * cross.trace()).item<double>();
  return means + std::max(0.0, spreads);
}

}  // namespace sdtune::train::evaluate
