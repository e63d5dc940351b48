#include "train/portrait/evaluate/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sdtune::train::evaluate {
namespace {

constexpr double kDeviations = 1.959964;  // 97.5 % of a normal distribution lie below
constexpr std::int64_t kGroups = 10;

}  // namespace

Estimate share_of(const torch::Tensor& hits) {
  TORCH_CHECK(hits.numel() > 0, "a share of nothing");
  const auto n = static_cast<double>(hits.numel());
  const double p = hits.to(torch::kFloat64).mean().item<double>();
  const double z2 = kDeviations * kDeviations;
  const double center = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kDeviations / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {p, std::clamp(center - half, 0.0, p), std::clamp(center + half, p, 1.0), hits.numel()};
}

Estimate mean_of(const torch::Tensor& values) {
  TORCH_CHECK(values.numel() > 0, "a mean of nothing");
  const torch::Tensor all = values.to(torch::kFloat64);
  const double mean = all.mean().item<double>();
  const auto n = static_cast<double>(values.numel());
  const double half = n > 1 ? kDeviations * all.std().item<double>() / std::sqrt(n) : 0.0;
  return {mean, mean - half, mean + half, values.numel()};
}

Estimate jackknife(std::int64_t count, const std::function<double(const torch::Tensor& rows)>& figure) {
  TORCH_CHECK(count > 1, "a jackknife needs two images");
  const torch::Tensor rows = torch::arange(count);
  const std::int64_t groups = std::min(count, kGroups);
  std::vector<double> without;
  for (std::int64_t group = 0; group < groups; ++group) {
    without.push_back(figure(rows.masked_select(rows.remainder(groups).ne(group))));
  }
  double mean = 0, squares = 0;
  for (const double value : without) mean += value / static_cast<double>(groups);
  for (const double value : without) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares * static_cast<double>(groups - 1) / static_cast<double>(groups));
  const double value = figure(rows);
  return {value, value - kDeviations * error, value + kDeviations * error, count};
}

}  // namespace sdtune::train::evaluate
