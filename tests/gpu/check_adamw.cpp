#include <cmath>
#include <memory>

#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;
using train::AdamWScalars;
using train::CudaAdamWStep;

// Sizes with tails, a chunk and what is above it.
const std::vector<std::int64_t> kCounts = {1, 3, 4, 257, 1000, train::kChunkNumbers, 2 * train::kChunkNumbers + 77};

struct Numbers {
  std::vector<float> master, mean, square, gradient;
};

Numbers numbers_of(std::int64_t count, unsigned seed, CudaType gradient) {
  const auto size = static_cast<std::size_t>(count);
  Numbers n{random_numbers(size, seed), random_numbers(size, seed + 1, 0.1f), random_numbers(size, seed + 2, 0.1f),
            rounded(random_numbers(size, seed + 3), gradient)};
  for (float& value : n.square) value *= value;
  return n;
}

// adamw_update() (train/optim/adamw_kernel.cpp): in float32, each product rounded by itself.
void update(Numbers& n, const AdamWScalars& s) {
  for (std::size_t i = 0; i < n.master.size(); ++i) {
    const float gradient = n.gradient[i] * s.gradient_factor;
    const float toward = s.keep1 * (gradient - n.mean[i]);
    n.mean[i] = n.mean[i] + toward;
    const float kept = s.beta2 * n.square[i], scaled = s.keep2 * gradient;
    const float added = scaled * gradient;
    n.square[i] = kept + added;
    const float denominator = std::sqrt(n.square[i]) / s.root_bias_correction2 + s.epsilon;
    const float decayed = n.master[i] * s.decay, step = s.step_size * n.mean[i];
    n.master[i] = decayed - step / denominator;
  }
}

struct Parameter {
  Parameter(const Numbers& n, CudaType weight_type, CudaType gradient_type, std::size_t misalignment)
      : weight(n.master, weight_type, misalignment),
        gradient(n.gradient, gradient_type, misalignment),
        master(n.master, misalignment * sizeof(float)),
        mean(n.mean),
        square(n.square) {}
  train::CudaParameter entry(std::int64_t count, bool own_master) {
    return {
        own_master ? master.data() : weight.data(), gradient.data(), master.data(), mean.data(), square.data(), count};
  }

  TypedVector weight, gradient;
  DeviceVector<float> master, mean, square;
};

constexpr AdamWScalars kScalars{0.5f, 0.999f, 0.9f, 0.999f, 0.1f, 0.001f, 1e-2f, 0.0447f, 1e-8f};

void check_types(Check& check, CudaType weight_type, CudaType gradient_type, bool skip, std::size_t misalignment) {
  const bool own_master = weight_type == CudaType::kFloat32;
  std::vector<Numbers> want;
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<train::CudaParameter> entries;
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    want.push_back(numbers_of(kCounts[i], static_cast<unsigned>(10 * i), gradient_type));
    parameters.push_back(std::make_unique<Parameter>(want[i], weight_type, gradient_type, misalignment));
    entries.push_back(parameters[i]->entry(kCounts[i], own_master));
  }
  DeviceVector<train::CudaParameter> list(entries);
  const std::vector<train::CudaChunk> chunk_list = chunks_of(kCounts);
  DeviceVector<train::CudaChunk> chunks(chunk_list);
  DeviceVector<CudaAdamWStep> step({CudaAdamWStep{kScalars, skip ? 1 : 0}});
  sdtune_optimizer_table()->adamw(list.data(), chunks.data(), static_cast<std::int64_t>(chunk_list.size()), weight_type,
                                  gradient_type, step.data(), kStream);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    const std::string of = std::to_string(kCounts[i]) + " " + name_of(weight_type) + " " + name_of(gradient_type);
    if (!skip) update(want[i], kScalars);
    check.equal(of + " master", parameters[i]->master.host() == want[i].master);
    check.equal(of + " mean", parameters[i]->mean.host() == want[i].mean);
    check.equal(of + " square", parameters[i]->square.host() == want[i].square);
    if (own_master) continue;
    check.equal(of + " weight", parameters[i]->weight.host() == rounded(want[i].master, weight_type));
  }
}

void check_step_values(Check& check, float factor, std::int64_t before) {
  const std::vector<double> rates = {1e-4, 3e-5};
  DeviceVector<double> device_rates(rates);
  DeviceVector<float> device_factor({factor});
  DeviceVector<std::int64_t> updates({before});
  DeviceVector<CudaAdamWStep> steps(std::vector<CudaAdamWStep>(2));
  sdtune_optimizer_table()->adamw_step(device_rates.data(), 2, device_factor.data(), updates.data(),
                                       {0.9, 0.999, 1e-8, 1e-2}, steps.data(), kStream);
  const bool is_finite = std::isfinite(factor);
  check.equal("updates", updates.host()[0] == before + (is_finite ? 1 : 0));
  const std::vector<CudaAdamWStep> got = steps.host();
  for (std::size_t group = 0; group < 2; ++group) {
    check.equal("skip", (got[group].skip != 0) == !is_finite);
    if (!is_finite) continue;
    const auto t = static_cast<double>(before + 1);
    const AdamWScalars& s = got[group].scalars;
    check.near("scalars", {s.decay, s.step_size, s.root_bias_correction2, s.keep1, s.keep2, s.gradient_factor},
               {1 - rates[group] * 1e-2, rates[group] / (1 - std::pow(0.9, t)), std::sqrt(1 - std::pow(0.999, t)), 0.1,
                0.001, factor},
               1e-7);
    check.near("step size", {s.step_size}, {rates[group] / (1 - std::pow(0.9, t))}, 1e-7);
    check.near("second correction", {s.root_bias_correction2}, {std::sqrt(1 - std::pow(0.999, t))}, 1e-7);
  }
}

}  // namespace

void check_adamw() {
  {
    Check check("adamw_step");
    for (const float factor : {1.0f, 0.25f, NAN, INFINITY}) {
      for (const std::int64_t before : {0, 1, 5000}) check_step_values(check, factor, before);
    }
  }
  Check check("adamw, same bits as the CPU");
  for (const CudaType weight : kTypes) {
    for (const CudaType gradient : kTypes) check_types(check, weight, gradient, false, 0);
    check_types(check, weight, CudaType::kFloat32, false, 1);
    check_types(check, weight, CudaType::kBFloat16, true, 0);
  }
}

}  // namespace sdtune::test
