#include "train/portrait/evaluate/frechet.h"

#include <gtest/gtest.h>

namespace sdtune::train::evaluate {
namespace {

torch::Tensor cloud(std::int64_t seed, std::int64_t count) {
  torch::manual_seed(seed);
  return torch::randn({count, 6}, torch::kFloat64) * torch::tensor({3.0, 2.0, 1.0, 1.0, 0.5, 0.1}, torch::kFloat64);
}

TEST(Frechet, IsNothingForTheSameSet) {
  const torch::Tensor reference = cloud(1, 400);
  EXPECT_NEAR(frechet_distance(reference, reference), 0.0, 1e-8);
  EXPECT_NEAR(frechet_distance(reference.flip(0), reference), 0.0, 1e-8);
  EXPECT_LT(frechet_distance(cloud(2, 400), reference), 0.2);  // another sample of the same
}

// Every axis has variance 1 in the reference's scale, so a shift by one deviation of one axis counts 1.
TEST(Frechet, CountsShiftsInTheReferencesDeviations) {
  const torch::Tensor reference = cloud(1, 4000);
  torch::Tensor shifted = reference.clone();
  shifted.select(1, 0) += reference.select(1, 0).std();
  EXPECT_NEAR(frechet_distance(shifted, reference), 1.0, 0.05);
}

TEST(Frechet, CountsLostSpread) {
  const torch::Tensor reference = cloud(1, 4000);
  // Half the deviation of all six axes: 6 x (1 - 1/2)^2.
  EXPECT_NEAR(frechet_distance(reference * 0.5 + reference.mean(0, true) * 0.5, reference), 1.5, 1e-6);
  EXPECT_NEAR(frechet_distance(reference.mean(0, true).expand({10, 6}), reference), 6.0,
              1e-6);  // one image over and over
}

}  // namespace
}  // namespace sdtune::train::evaluate
