#include "train/portrait/evaluate/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sdtune::train::evaluate {
namespace {

constexpr double kDeviations = 1.959964;  // 97.5 % of a normal distribution lie below
constexpr std::int64_t kGroups = 10;

// The same of Student's t by degrees of freedom, from 1 on (NIST/SEMATECH e-Handbook of Statistical
// Methods, 1.3.6.7.2).
constexpr std::array<double, 30> kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                             2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                             2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

// Beyond the table by two terms of its series in 1 / freedom (Abramowitz and Stegun, 26.7.5), which errs by less than
// 1e-4 there.
double student(std::int64_t freedom) {
  TORCH_CHECK(freedom > 0, "no degrees of freedom");
  if (freedom <= static_cast<std::int64_t>(kStudent.size())) return kStudent.at(static_cast<std::size_t>(freedom - 1));
  const double z = kDeviations, z3 = z * z * z, z5 = z3 * z * z;
  const auto n = static_cast<double>(freedom);
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

}  // namespace

Estimate share_of(const torch::Tensor& hits) {
  return share_of(hits, static_cast<double>(hits.numel()));
}

Estimate share_of(const torch::Tensor& hits, double independent) {
  TORCH_CHECK(hits.numel() > 0, "a share of nothing");
  const double n = independent;
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
  const std::int64_t n = values.numel();
  const double half = n > 1 ? student(n - 1) * all.std().item<double>() / std::sqrt(static_cast<double>(n)) : 0.0;
  return {mean, mean - half, mean + half, n};
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
  const double value = figure(rows), half = student(groups - 1) * error;
  return {value, value - half, value + half, count};
}

}  // namespace sdtune::train::evaluate
