#include "model/core/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/files/temporary_folder.h"

namespace sdtune::model {
namespace {

void add_pci_device(const std::filesystem::path& root, const char* slot, const char* vendor, const char* device,
                    const char* kind) {
  const std::filesystem::path folder = root / "sys/bus/pci/devices" / slot;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "vendor") << vendor << '\n';
  std::ofstream(folder / "device") << device << '\n';
  std::ofstream(folder / "class") << kind << '\n';
}

TEST(FindNvidiaHardware, TakesDisplayAndComputeControllersOfNvidia) {
  const TemporaryFolder root(testing::TempDir() + "pci");
  EXPECT_TRUE(find_nvidia_hardware(root.path()).empty());
  add_pci_device(root.path(), "0000:00:02.0", "0x8086", "0x46a6", "0x030000");  // Intel's graphics
  add_pci_device(root.path(), "0000:01:00.0", "0x10de", "0x2684", "0x030000");
  add_pci_device(root.path(), "0000:01:00.1", "0x10de", "0x22ba", "0x040300");  // the same card's sound
  add_pci_device(root.path(), "0000:02:00.0", "0x10de", "0x2330", "0x030200");
  EXPECT_THAT(find_nvidia_hardware(root.path()), testing::ElementsAre("10de:2330", "10de:2684"));
}

TEST(CapabilityText, SeparatesMajorAndMinor) {
  EXPECT_EQ(capability_text(75), "7.5");
  EXPECT_EQ(capability_text(120), "12.0");
}

}  // namespace
}  // namespace sdtune::model
