#include "model/core/out_of_memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "model/core/cuda_table.h"

namespace sdtune::model {
namespace {

TEST(OutOfMemory, IsWhatTheCpuAllocatorThrows) {
  try {
    torch::empty({std::int64_t{1} << 50}, torch::kUInt8);  // a petabyte
    FAIL() << "memory was given";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what_without_backtrace();
  }
}

TEST(OutOfMemory, IsWhatADeviceSaysAndNothingElse) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError(here, "a GPU")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(here, "CUDA error: out of memory")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(here, "DefaultCPUAllocator: not enough memory: you tried to allocate 8")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(here, "The size of tensor a (3) must match the size of tensor b (4)")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(here, "index out of range")));
}

TEST(OutOfMemory, IsABadAllocOfTheSystemAndOfAKernel) {
  const KernelOutOfMemory kernel("kernel geglu on cuda:0: out of memory");
  const std::bad_alloc system;
  const std::exception& as_exception = kernel;
  EXPECT_TRUE(is_out_of_memory(as_exception));
  EXPECT_TRUE(is_out_of_memory(system));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("kernel geglu on cuda:0: invalid argument")));
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  const c10::Error torch_error(here, "CUDA error: out of memory");
  EXPECT_TRUE(is_out_of_memory(static_cast<const std::exception&>(torch_error)));
  EXPECT_EQ(words_of(kernel), "kernel geglu on cuda:0: out of memory");
  EXPECT_EQ(words_of(system), "the system has no memory left");
}

// The words of LibTorch 2.11 and cuDNN 9, and of those before.
TEST(OutOfMemory, IsWhatCudasLibrariesSayWhenTheyGetNone) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  for (const char* text :
       {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "CUDA driver error: out of memory", "GET was unable to find an engine to execute this computation",
        "FIND was unable to find an engine to execute this computation",
        "Unable to find a valid cuDNN algorithm to run convolution",
        "NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"/pytorch/c10/cuda/CUDACachingAllocator.cpp\":1165, please "
        "report a bug to PyTorch. "}) {
    EXPECT_TRUE(is_out_of_memory(c10::Error(here, text))) << text;
  }
  for (const char* text :
       {"CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle)`",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
        "CUDA error: an illegal memory access was encountered",
        "NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"/pytorch/c10/cuda/PeerToPeerAccess.cpp\":78",
        "block->allocated_ INTERNAL ASSERT FAILED at \"/pytorch/c10/cuda/CUDACachingAllocator.cpp\":714"}) {
    EXPECT_FALSE(is_out_of_memory(c10::Error(here, text))) << text;
  }
}

}  // namespace
}  // namespace sdtune::model
