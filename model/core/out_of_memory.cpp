#include "model/core/out_of_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/core/cuda_table.h"

namespace sdtune::model {

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // "ALLOC_FAILED": cuBLAS, cuSOLVER, cuFFT and cuDNN up to 8; "ALLOCATION_FAILED": cuDNN 9. "find an engine": LibTorch
  // tries every plan of a convolution, drops the error of one whose workspace does not fit, and says this in the end.
  // "NVML_SUCCESS": LibTorch asks NVML only to word its report that memory ran out, and NVML may be missing.
  constexpr std::array<std::string_view, 7> kSigns = {"DefaultCPUAllocator: can't allocate memory",
                                                      "DefaultCPUAllocator: not enough memory",
                                                      "out of memory",
                                                      "_ALLOC_FAILED",
                                                      "_ALLOCATION_FAILED",
                                                      "unable to find an engine to execute this computation",
                                                      "Unable to find a valid cuDNN algorithm to run convolution"};
  const std::string_view text = error.what_without_backtrace();
  const auto has = [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; };
  if (has("NVML_SUCCESS") && has("CUDACachingAllocator.cpp")) return true;
  return std::any_of(kSigns.begin(), kSigns.end(), has);
}

bool is_out_of_memory(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) return is_out_of_memory(*torch_error);
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

std::string words_of(const std::bad_alloc& error) {
  const bool is_of_device = dynamic_cast<const KernelOutOfMemory*>(&error) != nullptr;
  return is_of_device ? error.what() : "the system has no memory left";
}

}  // namespace sdtune::model
