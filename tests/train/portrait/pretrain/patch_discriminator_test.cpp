#include "train/portrait/pretrain/patch_discriminator.h"

#include <gtest/gtest.h>

#include "train/portrait/pretrain/initial_weights.h"

namespace sdtune::train::pretrain {
namespace {

PatchDiscriminator drawn() {
  PatchDiscriminator network(8);
  draw_initial_weights(*network, 0, 0);
  torch::NoGradGuard no_grad;
  network->named_parameters()["conv_out.weight"].normal_();  // which starts at zero
  return network;
}

TEST(PatchDiscriminator, ScoresPatches) {
  PatchDiscriminator network = drawn();
  EXPECT_EQ(network(torch::rand({2, 3, 128, 128})).sizes().vec(), (std::vector<std::int64_t>{2, 1, 30, 30}));
  EXPECT_EQ(network(torch::rand({1, 3, 64, 64})).sizes().vec(), (std::vector<std::int64_t>{1, 1, 14, 14}));
}

TEST(PatchDiscriminator, AScoreDoesNotDependOnTheOtherImages) {
  PatchDiscriminator network = drawn();
  const torch::Tensor images = torch::rand({3, 3, 64, 64});
  EXPECT_LT((network(images).slice(0, 1, 2) - network(images.slice(0, 1, 2))).abs().max().item<double>(), 1e-5);
}

TEST(AdversarialLosses, AreHinges) {
  const torch::Tensor sure = torch::full({4}, 3.0), unsure = torch::zeros({4});
  EXPECT_EQ(discriminator_loss(sure, -sure).item<double>(), 0);
  EXPECT_EQ(discriminator_loss(unsure, unsure).item<double>(), 1);
  EXPECT_EQ(discriminator_loss(-sure, sure).item<double>(), 4);
  EXPECT_EQ(generator_loss(sure).item<double>(), -3);
}

}  // namespace
}  // namespace sdtune::train::pretrain
