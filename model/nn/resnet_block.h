// diffusers' ResnetBlock2D: two convolutions with group norms, a time embedding between them, and a shortcut.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/activation.h"
#include "model/nn/linear.h"
#include "model/nn/norm.h"

namespace sdtune::model {

struct ResnetOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t time_channels = 0;  // 0: no time embedding
  int64_t norm_num_groups = 32;
  double norm_eps = 1e-5;
  Activation activation = Activation::kSilu;
  double output_scale_factor = 1.0;  // the result is divided by it
};

class ResnetBlock2DImpl : public torch::nn::Module {
 public:
  explicit ResnetBlock2DImpl(const ResnetOptions& options);

  // x [B, in, H, W], time [B, time_channels] already activated, or undefined -> [B, out, H, W]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& time = torch::Tensor());

 private:
  ResnetOptions options_;
  GroupNorm norm1_;
  Conv2d conv1_;
  Linear time_emb_proj_ = nullptr;
  GroupNorm norm2_;
  Conv2d conv2_;
  Conv2d conv_shortcut_ = nullptr;
};
TORCH_MODULE(ResnetBlock2D);

}  // namespace sdtune::model
