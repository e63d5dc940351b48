#include "train/portrait/evaluate/face_sharpness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace sdtune::train::evaluate {
namespace {

constexpr std::int64_t kSide = 128;

// One image whose face is a disc of 1.3 * 0.4 of half an image around the middle.
classifier::Reading face_in_the_middle() {
  classifier::Reading reading;
  reading.landmarks = torch::tensor({-0.2f, -0.2f, 0.2f, -0.2f, 0.0f, 0.0f, -0.1f, 0.2f, 0.1f, 0.2f}).view({1, 5, 2});
  reading.landmark_seen = torch::full({1, 5}, 0.9f);
  return reading;
}

torch::Tensor wave(double pixels, double amplitude = 0.5) {
  const torch::Tensor row = amplitude * torch::sin(torch::arange(kSide) * (2 * std::numbers::pi / pixels));
  return row.to(torch::kFloat32).expand({1, 3, kSide, kSide}).contiguous();
}

// Of a sine along rows: what a forward difference and two Gaussians leave of its power.
double energy_of_wave(double pixels, double amplitude, double from, double to) {
  const double k = 2 * std::numbers::pi / pixels;
  const double kept = std::exp(-0.5 * k * k * from * from) - std::exp(-0.5 * k * k * to * to);
  return amplitude * amplitude * (1 - std::cos(k)) * kept * kept;
}

TEST(FaceSharpness, AWaveHasTheEnergyThatGaussiansLeaveOfIt) {
  for (const double pixels : {3.0, 8.0, 16.0}) {
    const torch::Tensor energy = face_gradient_energy(wave(pixels), face_in_the_middle())[0];
    const std::array<double, 3> expected = {energy_of_wave(pixels, 0.5, 0, 1), energy_of_wave(pixels, 0.5, 1, 2),
                                            energy_of_wave(pixels, 0.5, 2, 4)};
    for (std::int64_t band = 0; band < 3; ++band) {
      const double value = expected.at(static_cast<std::size_t>(band));
      EXPECT_NEAR(energy[band].item<double>(), value, 0.05 * value + 1e-6) << pixels << " px, band " << band;
    }
  }
  // The mutant: the bands of another wavelength are far from these.
  EXPECT_GT(energy_of_wave(8, 0.5, 0, 1), 1.5 * energy_of_wave(16, 0.5, 0, 1));
}

TEST(FaceSharpness, NothingOutsideOfTheFaceCounts) {
  const torch::Tensor plain = wave(8), noisy = plain.clone();
  noisy.slice(2, 0, 16) = torch::rand({1, 3, 16, kSide});
  EXPECT_TRUE(
      face_gradient_energy(noisy, face_in_the_middle()).equal(face_gradient_energy(plain, face_in_the_middle())));
  noisy.slice(2, 60, 64) = torch::rand({1, 3, 4, kSide});
  EXPECT_FALSE(
      face_gradient_energy(noisy, face_in_the_middle()).equal(face_gradient_energy(plain, face_in_the_middle())));
}

TEST(FaceSharpness, AFaceWithoutLandmarksIsLeftOutOfTheMean) {
  classifier::Reading hidden = face_in_the_middle(), both = hidden;
  hidden.landmark_seen[0][1] = 0.2f;
  EXPECT_TRUE(face_gradient_energy(wave(8), hidden).isnan().all().item<bool>());
  both.landmarks = torch::cat({hidden.landmarks, hidden.landmarks});
  both.landmark_seen = torch::cat({hidden.landmark_seen, face_in_the_middle().landmark_seen});
  const torch::Tensor energy = face_gradient_energy(torch::cat({wave(3), wave(8)}), both);
  EXPECT_TRUE(mean_energy(energy).equal(energy[1]));
}

}  // namespace
}  // namespace sdtune::train::evaluate
