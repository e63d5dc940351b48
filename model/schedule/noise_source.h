// Where a scheduler takes its random draws from.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace sdtune::model {

// A stateful CPU generator that draws what torch.Generator("cpu").manual_seed(seed) draws.
at::Generator make_cpu_generator(std::uint64_t seed);

// Standard normal draws for step().
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;
  // A tensor of `shape` [B, ...] in `dtype` on `device`.
  virtual torch::Tensor draw(torch::IntArrayRef shape, torch::Dtype dtype, const torch::Device& device) = 0;
};

// Draws on the CPU in `dtype`, then moves: what diffusers' randn_tensor does with CPU generators. One generator draws
// the whole batch, several draw one sample each.
class GeneratorNoise : public NoiseSource {
 public:
  explicit GeneratorNoise(at::Generator generator);
  explicit GeneratorNoise(std::vector<at::Generator> generators);
  torch::Tensor draw(torch::IntArrayRef shape, torch::Dtype dtype, const torch::Device& device) override;

 private:
  std::vector<at::Generator> generators_;
};

// Gives the same tensor at each draw; its shape must be the one asked for.
class FixedNoise : public NoiseSource {
 public:
  explicit FixedNoise(torch::Tensor noise);
  torch::Tensor draw(torch::IntArrayRef shape, torch::Dtype dtype, const torch::Device& device) override;

 private:
  torch::Tensor noise_;
};

}  // namespace sdtune::model
