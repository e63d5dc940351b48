// A figure and how sure it is: 95 % intervals over the images that were scored.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace sdtune::train::evaluate {

struct Estimate {
  double value = 0;
  double low = 0;  // of the 95 % interval
  double high = 0;
  std::int64_t count = 0;  // images it was made from
};

// A share of yes and no, [n] bool with n > 0, and n as its count. Wilson's interval, which is not empty at 0 and 1.
Estimate share_of(const torch::Tensor& hits);

// The same share with the interval of `independent` answers, which are fewer than n where some depend on others.
Estimate share_of(const torch::Tensor& hits, double independent);

// The mean of [n] numbers, n > 0, with Student's t of n - 1 degrees of freedom times its standard error either way
// (none for n = 1).
Estimate mean_of(const torch::Tensor& values);

// A figure of all `count` images together, given by their row numbers [n] int64: jackknife standard errors, where each
// of (up to) ten groups is left out once, times Student's t of one degree of freedom less than there are groups.
Estimate jackknife(std::int64_t count, const std::function<double(const torch::Tensor& rows)>& figure);

}  // namespace sdtune::train::evaluate
