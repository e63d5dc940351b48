// Faces without eyes or a mouth, so that a classifier tells whether they are there.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "train/portrait/classifier/classifier_labels.h"

namespace sdtune::train::classifier {

struct ErasedImages {
  torch::Tensor images;  // [B, 3, S, S]
  Labels labels;         // what was erased is not seen, and what only it would show is hidden
};

// Of `share` of the images [B, 3, S, S], on the CPU, one eye, both eyes or the mouth is painted over with the colours
// around it, blurred. A pure function of its arguments; row i depends on its own random numbers only. Labels without
// landmarks (std::invalid_argument) cannot say where that is.
ErasedImages erase_landmarks(const torch::Tensor& images, const Labels& labels, double share, std::uint64_t seed,
                             std::uint64_t step);

}  // namespace sdtune::train::classifier
