// Initial values of parameters, and how to do without them.
#pragma once

#include <torch/types.h>

namespace sdtune::model {

// While one lives, modules made on this thread get uninitialised weights. For models whose every weight is about to be
// loaded: drawing the 860 million of SD 1.5 takes seconds.
class WithoutInitialValues {
 public:
  WithoutInitialValues();
  ~WithoutInitialValues();
  WithoutInitialValues(const WithoutInitialValues&) = delete;
  WithoutInitialValues& operator=(const WithoutInitialValues&) = delete;

 private:
  bool outer_;
};

// Float32 parameters, drawn from LibTorch's CPU generator unless a WithoutInitialValues lives.
torch::Tensor uniform_parameter(torch::IntArrayRef shape, double bound);  // U(-bound, bound)
torch::Tensor normal_parameter(torch::IntArrayRef shape, double std);     // N(0, std^2)

}  // namespace sdtune::model
