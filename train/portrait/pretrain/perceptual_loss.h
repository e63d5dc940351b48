// The distance of two images in the maps of a portrait classifier.
#pragma once

#include <torch/types.h>

#include <vector>

namespace sdtune::train::pretrain {

// As LPIPS without its learned weights (Zhang et al., "The unreasonable effectiveness of deep features as a perceptual
// metric", CVPR 2018): at each place of each map [B, C, h, w] the channels are brought to length 1, their squared
// difference is summed over channels and averaged over places, and the maps are added up. Scalar, mean of the batch.
torch::Tensor perceptual_loss(const std::vector<torch::Tensor>& maps, const std::vector<torch::Tensor>& others);

}  // namespace sdtune::train::pretrain
