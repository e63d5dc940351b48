#include "train/config/rank_configuration.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

std::string of_device(const std::string& device, bool on_gpu) {
  TrainConfig config;
  config.run.device = device;
  return rank_configuration(config, on_gpu);
}

TEST(RankConfiguration, LeavesOutWhatRanksDecideForThemselves) {
  EXPECT_EQ(of_device("auto", true), of_device("cuda:1", true));
  TrainConfig config;
  config.run.overwrite = true;
  config.checkpoint.resume_from_checkpoint = "auto";
  EXPECT_EQ(rank_configuration(config, false), of_device("cpu", false));
  config.run.seed = 9;
  EXPECT_NE(rank_configuration(config, false), of_device("cpu", false));
}

// Where --device auto finds no GPU on one of the machines: their backends would wait for each other.
TEST(RankConfiguration, TellsACpuFromAGpu) {
  const std::string gpu = of_device("auto", true), cpu = of_device("auto", false);
  EXPECT_NE(gpu, cpu);
  EXPECT_NE(gpu.find("\ndevice: cuda"), std::string::npos) << gpu;
  EXPECT_NE(cpu.find("\ndevice: cpu"), std::string::npos) << cpu;
}

}  // namespace
}  // namespace sdtune::train
