#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/kernels/geglu.h"
#include "model/kernels/group_norm.h"
#include "model/kernels/group_norm_cuda.h"
#include "tests/gpu/stand_in/stand_in.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

using test::relative_error;
using test::StandInScope;
using test::Tables;
using testing::HasSubstr;

struct Result {
  torch::Tensor y;
  std::vector<torch::Tensor> gradients;
};

struct Inputs {
  Inputs(torch::ScalarType dtype, torch::MemoryFormat format) {
    torch::manual_seed(0);
    const auto leaf = [&](const torch::Tensor& t) { return t.to(dtype).set_requires_grad(true); };
    x = leaf((torch::randn({2, 40, 6, 5}) * 2 + 3).contiguous(format));
    weight = leaf(torch::randn({40})), bias = leaf(torch::randn({40})), offset = leaf(torch::randn({2, 40}));
    dy = torch::randn({2, 40, 6, 5}).to(dtype);
  }
  GroupNormArguments arguments() const {
    return {.weight = weight, .bias = bias, .offset = offset, .groups = 8, .silu = true};
  }
  Result with(const torch::Tensor& y) const {
    return {y, torch::autograd::grad({y}, {x, weight, bias, offset}, {dy.to(y.scalar_type())})};
  }

  torch::Tensor x, weight, bias, offset, dy;
};

Result reference(const Inputs& in) {
  const auto wide = [](const torch::Tensor& t) { return t.to(torch::kFloat64); };
  return in.with(group_norm_by_library(
      wide(in.x),
      {.weight = wide(in.weight), .bias = wide(in.bias), .offset = wide(in.offset), .groups = 8, .silu = true}));
}

int calls = 0;

void counted_forward(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                     const CudaStream& stream) {
  ++calls;
  sdtune_cuda_table()->group_norm_forward(tensors, shape, type, stream);
}

// Forgets SiLU.
void broken_forward(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                    const CudaStream& stream) {
  CudaGroupNorm wrong = shape;
  wrong.silu = false;
  ++calls;
  sdtune_cuda_table()->group_norm_forward(tensors, wrong, type, stream);
}

void broken_geglu_backward(const void* dy, const void* x, void* dx, std::int64_t rows, std::int64_t width,
                           CudaType type, const CudaStream& stream) {
  sdtune_cuda_table()->geglu_backward(x, dy == x ? dy : x, dx, rows, width, type, stream);
}

TEST(GroupNormKernel, ProvesItselfAndAgreesWithDouble) {
  Tables tables;
  tables.model.group_norm_forward = counted_forward;
  const StandInScope scope(tables);
  testing::internal::CaptureStderr();
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
      const Inputs in(dtype, format);
      group_norm(in.x, in.arguments());  // and the proof
      calls = 0;
      const Result ours = in.with(group_norm(in.x, in.arguments())), theirs = reference(in);
      EXPECT_EQ(calls, 1) << "proved once, then used";
      EXPECT_TRUE(ours.y.is_contiguous(format));
      EXPECT_EQ(ours.y.scalar_type(), dtype);
      const double allowed = dtype == torch::kFloat32 ? 2e-6 : dtype == torch::kFloat16 ? 1e-3 : 6e-3;
      EXPECT_LE(relative_error(ours.y, theirs.y), allowed) << dtype;
      EXPECT_GT(relative_error(ours.y * 1.02, theirs.y), allowed) << "a mutant must show";
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_LE(relative_error(ours.gradients[i], theirs.gradients[i]), allowed) << dtype << " gradient " << i;
      }
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(GroupNormKernel, IsSwitchedOffWithOneWarningWhereItDiffers) {
  Tables tables;
  tables.model.group_norm_forward = broken_forward;
  const StandInScope scope(tables);
  const Inputs in(torch::kFloat32, torch::MemoryFormat::ChannelsLast);
  testing::internal::CaptureStderr();
  const Result first = in.with(group_norm(in.x, in.arguments()));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning,
              HasSubstr("sdtune: warning: our kernel group_norm (float32) differs from LibTorch's operators on"));
  EXPECT_THAT(warning, HasSubstr("values by "));
  EXPECT_THAT(warning, HasSubstr("LibTorch's operators are used in its place"));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1);
  EXPECT_LE(relative_error(first.y, reference(in).y), 2e-6) << "what goes on is right";
  testing::internal::CaptureStderr();
  calls = 0;
  group_norm(in.x, in.arguments());
  EXPECT_EQ(calls, 0) << "it stays off";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "and is warned of once";
}

// Faults that show in one kind of case only: what each keeps from the kernel, or does to its values.
template <typename Fault>
void faulty_forward(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                    const CudaStream& stream) {
  CudaGroupNormForward given = tensors;
  CudaGroupNorm wrong = shape;
  Fault()(given, wrong);
  sdtune_cuda_table()->group_norm_forward(given, wrong, type, stream);
}

struct NoFault {
  void operator()(CudaGroupNormForward&, CudaGroupNorm&) const {}
};
struct AlwaysSilu {
  void operator()(CudaGroupNormForward&, CudaGroupNorm& shape) const { shape.silu = true; }
};
struct OffsetFromBias {  // where there is none
  void operator()(CudaGroupNormForward& tensors, CudaGroupNorm& shape) const {
    if (tensors.offset == nullptr && shape.batch == 1) tensors.offset = tensors.bias;
  }
};
struct SecondTile {  // of channels_last: 64 packs of 4 to 8 channels
  void operator()(CudaGroupNormForward& tensors, CudaGroupNorm& shape) const {
    if (shape.channels_last && shape.channels > 1024) tensors.bias = tensors.weight;
  }
};
struct SecondSlab {  // of a plane: 4 packs of 8 numbers for each of 32 threads
  void operator()(CudaGroupNormForward& tensors, CudaGroupNorm& shape) const {
    if (!shape.channels_last && shape.spatial > 1024) tensors.bias = tensors.weight;
  }
};

template <typename Fault>
std::string warning_of(torch::ScalarType dtype) {
  Tables tables;
  tables.model.group_norm_forward = faulty_forward<Fault>;
  const StandInScope scope(tables);
  const Inputs in(dtype, torch::MemoryFormat::Contiguous);
  testing::internal::CaptureStderr();
  group_norm(in.x, in.arguments());
  return testing::internal::GetCapturedStderr();
}

TEST(GroupNormKernel, ProofReachesSeveralSlabsAndTilesAndEveryArgument) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    EXPECT_EQ(warning_of<NoFault>(dtype), "");
    EXPECT_THAT(warning_of<AlwaysSilu>(dtype), HasSubstr("our kernel group_norm"));
    EXPECT_THAT(warning_of<OffsetFromBias>(dtype), HasSubstr("our kernel group_norm"));
    EXPECT_THAT(warning_of<SecondTile>(dtype), HasSubstr("our kernel group_norm"));
    EXPECT_THAT(warning_of<SecondSlab>(dtype), HasSubstr("our kernel group_norm"));
  }
}

TEST(GroupNormKernel, LeavesToLibTorchWhatItCannotTake) {
  Tables tables;
  tables.model.group_norm_forward = counted_forward;
  const StandInScope scope(tables);
  const torch::Tensor x = torch::randn({1, 514, 2, 2}), one = torch::ones({514}), zero = torch::zeros({514});
  calls = 0;
  group_norm(x, {.weight = one, .bias = zero, .groups = 2});  // wide groups
  group_norm(x.to(torch::kFloat64), {.weight = one.to(torch::kFloat64), .bias = zero.to(torch::kFloat64)});
  EXPECT_EQ(calls, 0);
}

TEST(GegluKernel, AgreesWithDoubleAndIsSwitchedOffWhereItDiffers) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({3, 7, 26}).set_requires_grad(true), dy = torch::randn({3, 7, 13});
  const auto halves = x.to(torch::kFloat64).chunk(2, -1);
  const torch::Tensor expected = halves[0] * torch::gelu(halves[1]);
  const torch::Tensor expected_gradient = torch::autograd::grad({expected}, {x}, {dy.to(torch::kFloat64)}, true)[0];
  for (const bool is_broken : {false, true}) {
    Tables tables;
    if (is_broken) tables.model.geglu_backward = broken_geglu_backward;
    const StandInScope scope(tables);
    testing::internal::CaptureStderr();
    const torch::Tensor y = geglu(x);
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_EQ(warning.find("our kernel geglu (float32)") != std::string::npos, is_broken) << warning;
    EXPECT_LE(relative_error(y, expected), 1e-6);
    EXPECT_LE(relative_error(torch::autograd::grad({y}, {x}, {dy})[0], expected_gradient), 1e-6);
  }
}

TEST(Kernels, LibrarySwitchesAllOff) {
  Tables tables;
  tables.model.group_norm_forward = counted_forward;
  const StandInScope scope(tables);
  const test::Environment library("SDTUNE_KERNELS", "library");
  const Inputs in(torch::kFloat32, torch::MemoryFormat::Contiguous);
  calls = 0;
  EXPECT_LE(relative_error(group_norm(in.x, in.arguments()), reference(in).y), 2e-6);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace sdtune::model
