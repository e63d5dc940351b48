#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/core/random.h"
#include "tests/gpu/stand_in/stand_in.h"
#include "tests/support/relative_error.h"
#include "train/optim/adamw.h"
#include "train/optim/adamw_8bit.h"
#include "train/optim/clip_grad.h"
#include "train/optim/gradient_norm_cuda.h"

namespace sdtune::train {
namespace {

using test::relative_error;
using test::StandInScope;
using test::Tables;
using testing::HasSubstr;

const std::vector<torch::MemoryFormat> kFormats = {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast};

// Parameters large and small, in two rate groups; each call gives the same numbers.
std::vector<TrainedParameter> parameters_in(torch::MemoryFormat format, torch::ScalarType dtype) {
  torch::manual_seed(0);
  std::vector<TrainedParameter> parameters;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{40, 24, 3, 3}, {64, 128, 1, 1}, {7, 3, 3, 3}, {33, 150, 3, 1}}) {
    const torch::Tensor weight = torch::randn(shape).to(dtype).contiguous(format);
    const torch::Tensor gradient = torch::empty_like(weight);
    parameters.push_back({std::string("p").append(std::to_string(parameters.size())),
                          weight,
                          gradient,
                          {},
                          static_cast<std::int64_t>(parameters.size() % 2)});
  }
  return parameters;
}

// Steps, one of them skipped; the states afterwards with the masters.
NamedStates run_steps(Optimizer& optimizer) {
  torch::manual_seed(1);
  const torch::Tensor rates = torch::tensor({1e-3, 3e-4}, torch::kFloat64);
  for (const float factor : {0.5F, 1.0F, std::numeric_limits<float>::quiet_NaN(), 0.25F}) {
    for (const TrainedParameter& parameter : optimizer.parameters()) {
      torch::Tensor gradient = parameter.gradient;
      gradient.copy_(torch::randn(gradient.sizes()));
    }
    optimizer.step(rates, torch::scalar_tensor(factor));
  }
  NamedStates states = optimizer.states();
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    states.emplace_back(optimizer.parameters()[i].name, optimizer.parameters()[i].weight);
    states.emplace_back(optimizer.parameters()[i].name + ".master", optimizer.masters()[i]);
  }
  states.emplace_back("updates", optimizer.updates());
  return states;
}

template <typename Kind>
NamedStates states_by_kernels(torch::MemoryFormat format, torch::ScalarType dtype) {
  const Tables tables;
  const StandInScope scope(tables);
  Kind optimizer(parameters_in(format, dtype), OptimOptions());
  return run_steps(optimizer);
}

template <typename Kind>
NamedStates states_on_cpu(torch::MemoryFormat format, torch::ScalarType dtype) {
  Kind optimizer(parameters_in(format, dtype), OptimOptions());
  return run_steps(optimizer);
}

void expect_equal(const NamedStates& ours, const NamedStates& theirs, const char* what) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, theirs[i].first);
    EXPECT_TRUE(ours[i].second.equal(theirs[i].second)) << what << ": " << ours[i].first;
  }
}

TEST(AdamWKernel, GivesTheBitsOfTheCpu) {
  for (const auto format : kFormats) {
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
      expect_equal(states_by_kernels<AdamW>(format, dtype), states_on_cpu<AdamW>(format, dtype), c10::toString(dtype));
    }
  }
}

// The CPU's pass over memory knows the order of the shape only, so that is what both memory formats are compared with.
TEST(AdamW8bitKernel, GivesTheCodesOfTheCpuInBothMemoryFormats) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
    const NamedStates cpu = states_on_cpu<AdamW8bit>(torch::MemoryFormat::Contiguous, dtype);
    for (const auto format : kFormats) {
      expect_equal(states_by_kernels<AdamW8bit>(format, dtype), cpu, c10::toString(dtype));
    }
  }
}

TEST(AdamWKernel, LibraryGivesTheSameNumbersWithoutKernels) {
  for (const auto format : kFormats) {
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
      const NamedStates by_kernels = states_by_kernels<AdamW>(format, dtype);
      std::vector<TrainedParameter> parameters = parameters_in(format, dtype);
      const std::vector<torch::Tensor> masters = [&] {
        std::vector<torch::Tensor> copies;
        for (const TrainedParameter& parameter : parameters) copies.push_back(parameter.weight.to(torch::kFloat32));
        return copies;
      }();
      AdamWWork work{parameters, fresh_adamw_memory(parameters, masters), {}, {}};
      const torch::NoGradGuard no_grad;
      torch::Tensor updates = torch::zeros({}, torch::kInt64);
      const auto engine = make_library_adamw(work, OptimOptions());
      torch::manual_seed(1);
      for (const float factor : {0.5F, 1.0F, std::numeric_limits<float>::quiet_NaN(), 0.25F}) {
        for (const TrainedParameter& p : parameters) torch::Tensor(p.gradient).copy_(torch::randn(p.gradient.sizes()));
        engine->step(torch::tensor({1e-3, 3e-4}, torch::kFloat64), torch::scalar_tensor(factor), updates);
      }
      EXPECT_EQ(updates.item<std::int64_t>(), 3);
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const torch::Tensor& ours = by_kernels[2 * parameters.size() + 2 * i + 1].second;
        EXPECT_LE(relative_error(masters[i], ours), 1e-6);
        EXPECT_LE(relative_error(work.plain_memory[i].mean, by_kernels[2 * i].second), 1e-6);
      }
    }
  }
}

int steps = 0;

// Decodes each block by the next one's scale.
void broken_8bit(const CudaCodedParameter* parameters, const CudaChunk* chunks, std::int64_t count,
                 model::CudaType weight, model::CudaType gradient, const CudaAdamWStep* step, const CudaCodeBook* book,
                 const model::CudaStream& stream) {
  for (std::int64_t i = 0; i < 2; ++i) parameters[0].mean_scales[i] = parameters[0].mean_scales[i + 1];
  sdtune_optimizer_table()->adamw_8bit(parameters, chunks, count, weight, gradient, step, book, stream);
}

void broken_adamw(const CudaParameter*, const CudaChunk*, std::int64_t, model::CudaType, model::CudaType,
                  const CudaAdamWStep*, const model::CudaStream&) {
  ++steps;
}

template <typename Kind>
std::string error_of(const Tables& tables) {
  const StandInScope scope(tables);
  try {
    Kind optimizer(parameters_in(torch::MemoryFormat::Contiguous, torch::kFloat32), OptimOptions());
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ExitCode::kBug);
    return error.problems().front().line();
  }
  return "";
}

TEST(AdamWKernel, IsRefusedWhereItDiffers) {
  Tables tables;
  EXPECT_EQ(error_of<AdamW>(tables), "");
  EXPECT_EQ(error_of<AdamW8bit>(tables), "");
  tables.optim.adamw_8bit = broken_8bit;
  EXPECT_THAT(error_of<AdamW8bit>(tables), HasSubstr("device: our kernel adamw_8bit with gradients in Float (float32) "
                                                     "differs from LibTorch's operators on"));
  tables.optim.adamw = broken_adamw;
  EXPECT_THAT(error_of<AdamW>(tables), HasSubstr("SDTUNE_KERNELS=library"));
  EXPECT_GT(steps, 0);
}

std::vector<TrainedParameter> with_gradients(const std::vector<torch::Tensor>& gradients) {
  std::vector<TrainedParameter> parameters;
  for (const torch::Tensor& gradient : gradients) parameters.push_back({"p", gradient, gradient, {}, 0});
  return parameters;
}

int norms = 0;
void half_norm(const double* sums, std::int64_t count, float* norm, const model::CudaStream& stream) {
  ++norms;
  sdtune_optimizer_table()->gradient_norm(sums, count / 2, norm, stream);
}

TEST(GradientNormKernel, ClipsAsTheCpuDoesAndIsSwitchedOffWhereItDiffers) {
  torch::manual_seed(0);
  const std::vector<torch::Tensor> gradients = {torch::randn({40000}), torch::randn({7, 5}).to(torch::kBFloat16),
                                                torch::randn({3})};
  const torch::Tensor scale = torch::scalar_tensor(4.0F);
  const ClippedGradient cpu = clip_gradient(with_gradients(gradients), scale, 1.0);
  for (const bool is_broken : {false, true}) {
    Tables tables;
    if (is_broken) tables.optim.gradient_norm = half_norm;
    const StandInScope scope(tables);
    testing::internal::CaptureStderr();
    const ClippedGradient ours = clip_gradient(with_gradients(gradients), scale, 1.0);
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_EQ(warning.find("our kernel gradient_norm") != std::string::npos, is_broken) << warning;
    EXPECT_NEAR(ours.norm.item<double>() / cpu.norm.item<double>(), 1.0, 1e-6);
    EXPECT_NEAR(ours.factor.item<double>() / cpu.factor.item<double>(), 1.0, 1e-6);
  }
  const Tables tables;
  const StandInScope scope(tables);
  gradients[0][39999] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(clip_gradient(with_gradients(gradients), scale, 1.0).factor.item<float>()));
}

// One card may have switched the kernel off and another not: what they add up over the ranks must be of one size and
// type all the same, and each must then know the whole norm.
TEST(GradientNormKernel, RanksAddUpTheSamePartsWhereOneHasSwitchedItOff) {
  torch::manual_seed(0);
  const std::vector<TrainedParameter> parameters =
      with_gradients({torch::randn({40000}), torch::randn({7, 5}).to(torch::kBFloat16), torch::randn({3}),
                      torch::randn({9000}), torch::zeros({0})});
  const torch::Tensor scale = torch::scalar_tensor(4.0F);
  const double whole = clip_gradient(parameters, scale, 1.0).norm.item<double>();
  std::vector<torch::Tensor> sent(2);
  std::vector<ClippedGradient> clipped(2);
  for (const int round : {0, 1}) {  // the second one knows what the other rank sends
    for (const std::size_t rank : {0, 1}) {
      Tables tables;
      if (rank == 1) tables.optim.gradient_norm = half_norm;
      const StandInScope scope(tables);
      OptimizerShard shard;
      shard.own = rank == 0 ? std::vector<std::size_t>{0, 2} : std::vector<std::size_t>{1, 3, 4};
      shard.total = parameters.size();
      shard.sum = [&](const torch::Tensor& parts) {
        if (round == 0) sent[rank] = parts.clone();
        if (round == 1) torch::Tensor(parts).add_(sent[1 - rank]);
      };
      testing::internal::CaptureStderr();
      clipped[rank] = clip_gradient(parameters, scale, 1.0, &shard);
      EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), rank == 0);
    }
    ASSERT_EQ(sent[0].sizes(), sent[1].sizes());
    ASSERT_EQ(sent[0].scalar_type(), sent[1].scalar_type());
  }
  for (const ClippedGradient& one : clipped) {
    EXPECT_NEAR(one.norm.item<double>() / whole, 1.0, 1e-6);
    EXPECT_EQ(one.sums.of_parts, clipped[0].sums.of_parts);
    EXPECT_TRUE(one.sums.parts.equal(clipped[0].sums.parts));
  }
  EXPECT_GT(std::abs(sent[0].sum().sqrt().item<double>() / 4.0 / whole - 1.0), 1e-3) << "one rank's part is not all";
}

TEST(GradientNormKernel, ARankWithoutParametersKnowsTheNormToo) {
  const std::vector<TrainedParameter> parameters = with_gradients({torch::full({3}, 2.0F)});
  const Tables tables;
  const StandInScope scope(tables);
  OptimizerShard shard;
  shard.total = 1;
  shard.sum = [](const torch::Tensor& parts) { torch::Tensor(parts).fill_(12.0); };
  EXPECT_NEAR(clip_gradient(parameters, torch::scalar_tensor(1.0F), 1.0, &shard).norm.item<double>(), 3.4641016, 1e-6);
}

void broken_random(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                   const model::CudaStream& stream) {
  sdtune_cuda_table()->philox_normal(out, rows, row_size, words, stream);
  out[rows * row_size - 1] *= 1.0000001F;
}

TEST(RandomKernel, GivesTheBitsOfTheCpuOrIsRefused) {
  const std::vector<model::SampleKey> keys = {{1, 2, false}, {3, 4, true}};
  const auto draw = [&] { return model::draw_normal_batch(7, model::Draw::kNoise, keys, {4, 9, 9}, torch::kCPU); };
  const torch::Tensor cpu = draw();
  Tables tables;
  {
    const StandInScope scope(tables);
    EXPECT_TRUE(draw().equal(cpu));
    const test::Environment library("SDTUNE_KERNELS", "library");
    EXPECT_TRUE(draw().equal(cpu));
  }
  tables.model.philox_normal = broken_random;
  const StandInScope scope(tables);
  try {
    draw();
    FAIL() << "one bit must show";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("our kernel philox_normal (float32) differs"));
  }
}

TEST(Kernels, AnotherWordIsRefused) {
  const test::Environment wrong("SDTUNE_KERNELS", "fast");
  try {
    model::parse_device("cpu", "device");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_THAT(error.problems().front().line(),
                HasSubstr("SDTUNE_KERNELS: no such choice of kernels (got fast; allowed: library)"));
  }
}

}  // namespace
}  // namespace sdtune::train
