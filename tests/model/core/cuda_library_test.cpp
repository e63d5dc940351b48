#include "model/core/cuda_library.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdlib>

#include "model/core/cuda_build.h"

namespace sdtune::model {
namespace {

void run_backward_on_the_cpu() {
  torch::Tensor x = torch::ones({3}).set_requires_grad(true);
  (x * x).sum().backward();
}

// Whether LibTorch asks libtorch_cuda about GPUs from now on; its own hooks, without that library, have no CUDA
// runtime.
bool asks_the_cuda_library() {
  return at::detail::getCUDAHooks().hasCUDART();
}

// Each order needs a process of its own: what LibTorch finds at first stays.
[[noreturn]] void end_with(bool answer) {
  std::_Exit(answer ? 0 : 1);
}

TEST(LoadCuda, BeforeABackwardPassLibTorchFindsTheGpus) {
  if (!cuda_build().with_kernels) GTEST_SKIP() << "this build has no CUDA kernels";
  ASSERT_EQ(missing_kernels(), "");
  EXPECT_EXIT(
      {
        if (!load_cuda().empty()) std::_Exit(2);
        run_backward_on_the_cpu();
        end_with(asks_the_cuda_library());
      },
      testing::ExitedWithCode(0), "");
}

// The reason for load_cuda_where_usable: this order cannot be mended afterwards.
TEST(LoadCuda, AfterABackwardPassLibTorchNoLongerLooks) {
  if (!cuda_build().with_kernels) GTEST_SKIP() << "this build has no CUDA kernels";
  ASSERT_EQ(missing_kernels(), "");
  EXPECT_EXIT(
      {
        run_backward_on_the_cpu();
        if (!load_cuda().empty()) std::_Exit(2);
        end_with(asks_the_cuda_library());
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace sdtune::model
