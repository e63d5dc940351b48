#include "train/prepare/resting_parts.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

// The meta device stands for the GPU; a move is only noted.
struct Part : torch::nn::Module {
  void to(torch::Device device, bool) override { place = device; }
  torch::Device place = torch::kMeta;
};

TEST(RestingParts, AreOnTheDeviceOnlyWhileTheyAreUsed) {
  const auto part = std::make_shared<Part>();
  RestingParts resting({part}, torch::kMeta, torch::kCPU);
  EXPECT_EQ(part->place, torch::kCPU);
  {
    const RestingParts::OnDevice outer(&resting);
    EXPECT_EQ(part->place, torch::kMeta);
    { const RestingParts::OnDevice inner(&resting); }
    EXPECT_EQ(part->place, torch::kMeta);  // the outer one still needs them
  }
  EXPECT_EQ(part->place, torch::kCPU);
  const RestingParts::OnDevice nothing(nullptr);
}

}  // namespace
}  // namespace sdtune::train
