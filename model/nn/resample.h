// Halving and doubling of feature maps, each with a 3x3 convolution, as diffusers' Downsample2D and Upsample2D.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/linear.h"

namespace sdtune::model {

class Downsample2DImpl : public torch::nn::Module {
 public:
  // padding 0 pads one row below and one column to the right, as the VAE does.
  Downsample2DImpl(int64_t channels, int64_t padding);
  torch::Tensor forward(const torch::Tensor& x);  // [B, C, H, W] -> [B, C, H / 2, W / 2]

 private:
  bool pad_after_;
  Conv2d conv_;
};
TORCH_MODULE(Downsample2D);

class Upsample2DImpl : public torch::nn::Module {
 public:
  explicit Upsample2DImpl(int64_t channels);
  // [B, C, h, w] -> [B, C, height, width] by nearest neighbour, then the convolution.
  torch::Tensor forward(const torch::Tensor& x, int64_t height, int64_t width);

 private:
  Conv2d conv_;
};
TORCH_MODULE(Upsample2D);

}  // namespace sdtune::model
