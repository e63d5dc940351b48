// How far one tensor is from another, as tests of kernels and optimizers state it.
#pragma once

#include <torch/types.h>

namespace sdtune::test {

// |got - expected| / |expected| over all numbers, computed in double precision; both of one shape.
inline double relative_error(const torch::Tensor& got, const torch::Tensor& expected) {
  const torch::Tensor reference = expected.to(torch::kFloat64);
  return ((got.to(torch::kFloat64) - reference).norm() / reference.norm()).item<double>();
}

}  // namespace sdtune::test
