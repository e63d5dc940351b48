#include "model/schedule/noise_source.h"

#include <ATen/CPUGeneratorImpl.h>

#include <utility>

#include "model/core/device_copy.h"

namespace sdtune::model {

at::Generator make_cpu_generator(std::uint64_t seed) {
  return at::detail::createCPUGenerator(seed);
}

GeneratorNoise::GeneratorNoise(at::Generator generator) : generators_{std::move(generator)} {}

GeneratorNoise::GeneratorNoise(std::vector<at::Generator> generators) : generators_(std::move(generators)) {
  TORCH_CHECK(!generators_.empty(), "no generator");
}

torch::Tensor GeneratorNoise::draw(torch::IntArrayRef shape, torch::Dtype dtype, const torch::Device& device) {
  const auto options = torch::TensorOptions().dtype(dtype).device(torch::kCPU);
  if (generators_.size() == 1) return copy_to_device(at::randn(shape, generators_[0], options), device);
  TORCH_CHECK(static_cast<std::size_t>(shape[0]) == generators_.size(), "a batch of ", shape[0], " and ",
              generators_.size(), " generators");
  std::vector<std::int64_t> sample_shape(shape.begin(), shape.end());
  sample_shape[0] = 1;
  std::vector<torch::Tensor> samples;
  for (const at::Generator& generator : generators_) samples.push_back(at::randn(sample_shape, generator, options));
  return copy_to_device(torch::cat(samples), device);
}

FixedNoise::FixedNoise(torch::Tensor noise) : noise_(std::move(noise)) {}

torch::Tensor FixedNoise::draw(torch::IntArrayRef shape, torch::Dtype dtype, const torch::Device& device) {
  TORCH_CHECK(noise_.sizes() == shape, "noise of shape ", noise_.sizes(), " where ", shape, " is needed");
  return noise_.to(device, dtype);
}

}  // namespace sdtune::model
