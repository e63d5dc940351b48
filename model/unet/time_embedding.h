// How timesteps and other numbers reach the network.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/activation.h"
#include "model/nn/linear.h"

namespace sdtune::model {

struct SinusoidOptions {
  int64_t channels = 0;  // even
  bool flip_sin_to_cos = true;
  int64_t freq_shift = 0;
};

// Sinusoids of geometrically spaced frequencies, Vaswani et al. (2017): values [N] -> float32 [N, channels].
torch::Tensor sinusoidal_embedding(const torch::Tensor& values, const SinusoidOptions& options);

// linear_1, activation, linear_2.
class TimestepEmbeddingImpl : public torch::nn::Module {
 public:
  TimestepEmbeddingImpl(int64_t in_channels, int64_t time_channels, Activation activation);
  torch::Tensor forward(const torch::Tensor& x);  // [B, in] -> [B, time]

 private:
  Activation activation_;
  Linear linear_1_, linear_2_;
};
TORCH_MODULE(TimestepEmbedding);

}  // namespace sdtune::model
