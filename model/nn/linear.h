// Linear and Conv2d with PyTorch's parameter names and initial values. Our own, because they are where low-rank
// branches attach.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/low_rank.h"

namespace sdtune::model {

// y = x W^T + b; weight [out, in], bias [out].
class LinearImpl : public torch::nn::Module, public LowRankLayer {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, bool with_bias = true);

  torch::Tensor forward(const torch::Tensor& x);               // [..., in] -> [..., out]
  torch::Tensor forward_without_bias(const torch::Tensor& x);  // the same without b
  torch::Tensor layer_weight() const override { return weight; }

  torch::Tensor weight;
  torch::Tensor bias;  // undefined when made without

 private:
  torch::Tensor add_branches(torch::Tensor y, const torch::Tensor& x) const;
};
TORCH_MODULE(Linear);

// A square kernel; the same stride and zero padding on both axes.
struct Conv2dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 1;
};

// weight [out, in, k, k], bias [out]. The result has the memory format of the input.
class Conv2dImpl : public torch::nn::Module, public LowRankLayer {
 public:
  explicit Conv2dImpl(const Conv2dOptions& options);

  torch::Tensor forward(const torch::Tensor& x);  // [B, in, H, W] -> [B, out, H', W']
  torch::Tensor layer_weight() const override { return weight; }

  torch::Tensor weight;
  torch::Tensor bias;

 private:
  torch::Tensor add_branches(torch::Tensor y, const torch::Tensor& x) const;

  Conv2dOptions options_;
};
TORCH_MODULE(Conv2d);

}  // namespace sdtune::model
