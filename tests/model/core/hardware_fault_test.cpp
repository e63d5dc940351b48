#include "model/core/hardware_fault.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace sdtune::model {
namespace {

c10::Error torch_error(const std::string& text) {
  return c10::Error(c10::SourceLocation{"", "", 0}, text);
}

TEST(HardwareFault, IsWhatCudaSaysOfBrokenHardware) {
  const std::string said =
      "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported";
  const std::optional<Problem> found = hardware_fault(torch_error(said));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->where, "GPU");
  EXPECT_EQ(found->what, "its hardware failed: CUDA error: uncorrectable ECC error encountered");
  for (const char* text : {"kernel adamw on device 1: uncorrectable ECC error encountered",
                           "uncorrectable NVLink error detected during the execution",
                           "Invalid access of peer GPU memory over nvlink or a hardware error"}) {
    EXPECT_TRUE(hardware_fault(std::runtime_error(text))) << text;
  }
}

TEST(HardwareFault, IsNotWhatAWrongProgramCausesToo) {
  for (const char* text :
       {"CUDA error: an illegal memory access was encountered", "CUDA error: unspecified launch failure",
        "CUDA error: device-side assert triggered", "CUDA out of memory", ""}) {
    EXPECT_FALSE(hardware_fault(torch_error(text))) << text;
  }
  EXPECT_FALSE(hardware_fault(std::bad_alloc()));
}

}  // namespace
}  // namespace sdtune::model
