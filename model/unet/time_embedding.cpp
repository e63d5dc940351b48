#include "model/unet/time_embedding.h"

#include <cmath>

namespace sdtune::model {

torch::Tensor sinusoidal_embedding(const torch::Tensor& values, const SinusoidOptions& options) {
  const int64_t half = options.channels / 2;
  const torch::Tensor steps = torch::arange(half, values.options().dtype(torch::kFloat32));
  const torch::Tensor exponents = steps * (-std::log(10000.0)) / static_cast<double>(half - options.freq_shift);
  const torch::Tensor angles = values.to(torch::kFloat32).unsqueeze(1) * exponents.exp().unsqueeze(0);
  return options.flip_sin_to_cos ? torch::cat({angles.cos(), angles.sin()}, 1)
                                 : torch::cat({angles.sin(), angles.cos()}, 1);
}

TimestepEmbeddingImpl::TimestepEmbeddingImpl(int64_t in_channels, int64_t time_channels, Activation activation)
    : activation_(activation), linear_1_(in_channels, time_channels), linear_2_(time_channels, time_channels) {
  register_module("linear_1", linear_1_);
  register_module("linear_2", linear_2_);
}

torch::Tensor TimestepEmbeddingImpl::forward(const torch::Tensor& x) {
  return linear_2_(activate(linear_1_(x), activation_));
}

}  // namespace sdtune::model
