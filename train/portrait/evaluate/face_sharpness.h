// How much detail faces have, octave by octave.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::evaluate {

// Differences of images blurred by Gaussians of 0 and 1, 1 and 2, and 2 and 4 px standard deviation.
inline constexpr std::array<std::string_view, 3> kBandNames = {"fine", "middle", "coarse"};

// Mean squared gradient of the grey image within the face, for each band: [N, 3] float64. images [N, 3, S, S] in [-1,
// 1], S the classifier's size; `reading` is of these images. The face is a disc around the five landmarks, whose radius
// is 1.3 times the distance between the middles of the eyes and of the mouth. NaN for an image of which the classifier
// sees not all landmarks, or finds them too near to each other.
torch::Tensor face_gradient_energy(const torch::Tensor& images, const classifier::Reading& reading);

// The mean over those rows of `energy` [N, 3] that are not NaN: [3]; NaN where no row is left.
torch::Tensor mean_energy(const torch::Tensor& energy);

}  // namespace sdtune::train::evaluate
