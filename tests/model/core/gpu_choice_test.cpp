#include "model/core/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sdtune::model {
namespace {

using testing::HasSubstr;

const CudaBuild kRelease{true, 13000, {75, 80, 86, 90, 100, 120}, 120};
const CudaBuild kForH100{true, 13000, {90}, 0};
const CudaBuild kWithoutKernels{false, 13000, {}, 0};

CudaDriver driver_of(std::vector<CudaDeviceInfo> devices, int version = 13000) {
  CudaDriver driver;
  driver.found = true;
  driver.version = version;
  driver.status = devices.empty() ? 100 : 0;
  driver.devices = std::move(devices);
  return driver;
}

TEST(ChooseGpu, TakesTheFirstThatCanBeUsed) {
  const CudaDriver two = driver_of({{"Tesla V100", 70, 0}, {"NVIDIA L4", 89, 0}});
  const GpuChoice choice = choose_gpu(two, kRelease);
  ASSERT_TRUE(choice.index.has_value());
  EXPECT_EQ(*choice.index, 1u);
  EXPECT_EQ(choice.fault, "");
  EXPECT_EQ(*choose_gpu(driver_of({{"NVIDIA T4", 75, 0}, {"NVIDIA L4", 89, 0}}), kRelease).index, 0u);
}

TEST(ChooseGpu, FindsNoneWithoutAFaultWhereThereIsNone) {
  CudaDriver hidden = driver_of({});
  hidden.hidden = true;
  hidden.hardware = {"10de:2684"};
  for (const CudaDriver& driver : {CudaDriver{}, driver_of({}), hidden}) {
    const GpuChoice choice = choose_gpu(driver, kRelease);
    EXPECT_FALSE(choice.index.has_value());
    EXPECT_EQ(choice.fault + choice.warning, "");
  }
}

TEST(ChooseGpu, NamesWhatMakesAGpuUnusable) {
  EXPECT_THAT(choose_gpu(driver_of({{"NVIDIA H100", 90, 0}}, 12040), kRelease).fault,
              HasSubstr("supports CUDA 12.4, and CUDA 13.0 (driver 580 or newer) is needed"));
  EXPECT_THAT(choose_gpu(driver_of({{"Tesla V100", 70, 0}, {"Tesla P100", 60, 0}}), kRelease).fault,
              HasSubstr("Tesla V100 has compute capability 7.0, and LibTorch needs 7.5 or newer; Tesla P100"));
  EXPECT_THAT(choose_gpu(driver_of({{"NVIDIA A100", 80, 0}}), kForH100).fault,
              HasSubstr("this build has kernels for 9.0 only: build with -DSDTUNE_CUDA_ARCHITECTURES=80"));
}

TEST(ChooseGpu, NamesADriverThatFails) {
  CudaDriver failing = driver_of({});
  failing.status = 802;
  failing.status_text = "system not yet initialized";
  EXPECT_THAT(choose_gpu(failing, kRelease).fault, HasSubstr("cuInit gave 802, system not yet initialized"));
  failing.status = 34;  // the toolkit's library for linking
  EXPECT_EQ(choose_gpu(failing, kRelease).fault, "");
}

TEST(ChooseGpu, AsksForTheListThatNamesNoGpu) {
  CudaDriver driver = driver_of({});
  driver.hardware = {"10de:2684"};
  EXPECT_THAT(choose_gpu(driver, kRelease).fault, HasSubstr("(PCI 10de:2684): does nvidia-smi list it?"));
  driver.visible_devices = "3";
  EXPECT_THAT(choose_gpu(driver, kRelease).fault, HasSubstr("(PCI 10de:2684): does CUDA_VISIBLE_DEVICES=3 begin with"));
  driver.status = 802;  // of the driver, whatever the list says
  EXPECT_THAT(choose_gpu(driver, kRelease).fault, HasSubstr("does nvidia-smi list it?"));
  CudaDriver without_pci = driver_of({});
  without_pci.release = "580.82.07";
  without_pci.visible_devices = "GPU-0a1b";
  EXPECT_THAT(choose_gpu(without_pci, kRelease).fault, HasSubstr("CUDA_VISIBLE_DEVICES=GPU-0a1b begin with"));
}

TEST(ChooseGpu, SeesHardwareThatNoDriverServes) {
  CudaDriver bare;
  bare.hardware = {"10de:2684"};
  EXPECT_THAT(choose_gpu(bare, kRelease).fault,
              HasSubstr("an NVIDIA GPU (PCI 10de:2684), and no NVIDIA driver is installed"));
  bare.in_container = true;
  EXPECT_THAT(choose_gpu(bare, kRelease).fault,
              HasSubstr("start the container with the NVIDIA runtime (docker run --gpus all"));
  CudaDriver module_only;
  module_only.release = "580.82.07";
  EXPECT_THAT(choose_gpu(module_only, kRelease).fault, HasSubstr("libcuda.so.1 is missing here"));
}

TEST(ChooseGpu, TakesTheCpuWithAWarningWithoutKernels) {
  const GpuChoice choice = choose_gpu(driver_of({{"NVIDIA L4", 89, 0}}), kWithoutKernels);
  EXPECT_FALSE(choice.index.has_value());
  EXPECT_EQ(choice.fault, "");
  EXPECT_THAT(choice.warning,
              HasSubstr("using the CPU, though this machine has NVIDIA L4: this sdtune was built without CUDA"));
}

TEST(ComputesBfloat16, FromAmpereOn) {
  EXPECT_FALSE(computes_bfloat16({"NVIDIA T4", 75, 0}));
  for (const int capability : {80, 86, 89, 90, 100, 120}) EXPECT_TRUE(computes_bfloat16({"GPU", capability, 0}));
}

TEST(FaultOfGpu, FollowsTheRulesOfMachineCodeAndPtx) {
  const auto fault = [](int capability, const CudaBuild& build) {
    return fault_of_gpu(driver_of({{"GPU", capability, 0}}), build, 0);
  };
  for (const int capability : {75, 80, 86, 89, 90, 100, 103, 120, 121, 130}) EXPECT_EQ(fault(capability, kRelease), "");
  EXPECT_NE(fault(110, kRelease), "");  // neither machine code of its major version nor older PTX
  EXPECT_NE(fault(120, kForH100), "");
  EXPECT_THAT(fault_of_gpu(driver_of({{"GPU", 90, 0}}), kRelease, 3), HasSubstr("there is no GPU 3 (found 1)"));
}

}  // namespace
}  // namespace sdtune::model
