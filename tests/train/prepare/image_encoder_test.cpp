#include "train/prepare/image_encoder.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_bundle.h"

namespace sdtune::train {
namespace {

std::vector<torch::Tensor> copies_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

TEST(ImageEncoder, EncodesInFloat32AndGivesTheWeightsBack) {
  const test::ScratchFolder scratch;
  model::ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  EXPECT_FALSE(float32_image_encoder(bundle)) << "it is float32 already";
  bundle.vae->to(torch::kFloat16);
  const std::vector<torch::Tensor> before = copies_of(bundle.vae->parameters());
  const torch::Tensor images = torch::rand({1, 3, 16, 16}) * 2 - 1;
  const model::Moments half = image_encoder(bundle)(images), exact = float32_image_encoder(bundle)(images);
  EXPECT_EQ(half.mean.scalar_type(), torch::kFloat16);
  EXPECT_EQ(exact.mean.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::allclose(half.mean.to(torch::kFloat32), exact.mean, 0.05, 0.05));
  const std::vector<torch::Tensor> after = bundle.vae->parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].scalar_type(), torch::kFloat16);
    EXPECT_TRUE(after[i].equal(before[i]));
  }
  bundle.vae->to(torch::kFloat32);
  EXPECT_TRUE(image_encoder(bundle)(images).mean.equal(exact.mean)) << "of the weights as they are";
}

}  // namespace
}  // namespace sdtune::train
