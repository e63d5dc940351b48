#include "train/portrait/pretrain/classifier_stage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/support/scratch_folder.h"

namespace sdtune::train::pretrain {
namespace {

PoolOptions pool_of(const std::filesystem::path& folder, std::int64_t size, std::int64_t count) {
  return {.folder = folder / "pictures", .size = size, .count = count, .views = 4, .threads = 2};
}

TEST(ClassifierStage, LossIsAFunctionOfWeightsSeedAndStep) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path(), 64, 132));
  torch::manual_seed(1);
  classifier::ClassifierNetwork network;
  ClassifierStage stage("judge", pool, network, 5, {}), same("judge", pool, network, 5, {}),
      other("judge", pool, network, 6, {});
  EXPECT_EQ(stage.batch_size(), 128);
  const double loss = stage.loss(7).item<double>();
  EXPECT_EQ(same.loss(7).item<double>(), loss);  // without the steps before it too
  EXPECT_NE(other.loss(7).item<double>(), loss);
  EXPECT_NE(same.loss(8).item<double>(), loss);
}

TEST(ClassifierStage, ReachesEveryParameterAndTheVae) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path(), 64, 16));
  torch::manual_seed(1);
  classifier::ClassifierNetwork network;
  std::int64_t reconstructed = 0;
  ClassifierStage stage("judge", pool, network, 5, [&](const torch::Tensor& images) {
    reconstructed += images.size(0);
    return images;
  });
  stage.loss(0).backward();
  EXPECT_EQ(stage.parameters().size(), network->parameters().size());
  for (const NamedParameter& parameter : stage.parameters()) {
    ASSERT_TRUE(parameter.weight.grad().defined()) << parameter.name;
    EXPECT_GT(parameter.weight.grad().abs().sum().item<double>(), 0.0) << parameter.name;
  }
  EXPECT_GT(reconstructed, 0);
}

// Weights of 8 bits of mantissa; the loss itself is computed in float32. Another step's loss is further off.
TEST(ClassifierStage, InBfloat16HasTheSameLossButForRounding) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), pool_of(scratch.path(), 64, 132));
  torch::manual_seed(1);
  classifier::ClassifierNetwork network;
  ClassifierStage stage("judge", pool, network, 5, {});
  const double exact = stage.loss(7).item<double>(), of_another_step = stage.loss(8).item<double>();
  network->to(torch::kBFloat16);
  const torch::Tensor loss = stage.loss(7);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  EXPECT_NEAR(loss.item<double>(), exact, 2e-3 * exact);
  EXPECT_GT(std::abs(of_another_step - exact), 2e-3 * exact);
}

// The classifier of 128 px learns landmarks too, and from the first images of the pool alone where it is told so.
TEST(ClassifierStage, OfDetailedPeopleReachesTheLandmarks) {
  const test::ScratchFolder scratch;
  PoolOptions options = pool_of(scratch.path(), 128, 16);
  options.detail = portrait::Detail::k128;
  ImagePool pool(real_file_system(), options);
  torch::manual_seed(1);
  classifier::ClassifierNetwork network(classifier::ClassifierDesign::of_size(128, "test"));
  ClassifierStage stage("features", pool, network, 5, {}), some("features", pool, network, 5, {}, 8);
  const double loss = stage.loss(1).item<double>();
  EXPECT_NE(some.loss(1).item<double>(), loss);
  stage.loss(1).backward();
  for (const NamedParameter& parameter : stage.parameters()) {
    ASSERT_TRUE(parameter.weight.grad().defined()) << parameter.name;
    EXPECT_GT(parameter.weight.grad().abs().sum().item<double>(), 0.0) << parameter.name;
  }
}

TEST(ClassifierStage, RefusesImagesThatTheClassifierCannotRead) {
  const test::ScratchFolder scratch;
  ImagePool small(real_file_system(), pool_of(scratch.path(), 16, 8));
  EXPECT_THROW(ClassifierStage("judge", small, classifier::ClassifierNetwork(), 5, {}), std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::pretrain
