// How far apart two sets of images are as a whole.
#pragma once

#include <torch/types.h>

namespace sdtune::train::evaluate {

// The Frechet distance of Heusel et al. 2017 ("FID"), with the classifier's features [n, F] and [m, F] instead of an
// ImageNet network's, in the 32 directions in which `reference` varies most, each scaled to variance 1 there: a few
// hundred images can fill 32 x 32 covariances, not F x F. 0 for equal means and covariances. Both sets need at least
// two images.
double frechet_distance(const torch::Tensor& features, const torch::Tensor& reference);

}  // namespace sdtune::train::evaluate
