// What a portrait classifier reads small marks from: maps that are fine enough to hold them.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "model/nn/linear.h"
#include "model/nn/norm.h"

namespace sdtune::train::classifier {

// A birthmark is 11 x 8 pixels of 128 and a mole three: averaged into the last map, 4 x 4 places, neither was learned.
// Here the classes of marks are read at every place of the second map (32 x 32 places), to which what coarser maps know
// of where eyes and mouth lie is added (Lin et al., "Feature pyramid networks for object detection", 2017), and an
// image shows a mark that one of its places shows: log of the mean of exponentials over the places (Pinheiro and
// Collobert, "From image-level to pixel-level labeling with convolutional networks", 2015, eq. 6). From the image's
// class alone that learned nothing in 15,360 images, so the loss names the places too (mark_place_loss).
class MarkHeadImpl : public torch::nn::Module {
 public:
  // widths: channels of the classifier's maps, the widest map first, four at least; side: places a side of the second.
  MarkHeadImpl(const std::vector<std::int64_t>& widths, std::int64_t side);

  // The classifier's maps -> [B, columns, side, side], the columns of Head::kStreak and of the heads after it, at every
  // place; 0 for the first class of each, which is to have none.
  torch::Tensor forward(const std::vector<torch::Tensor>& maps);

 private:
  model::Conv2d conv_fine_;
  model::Conv2d conv_middle_;
  model::Conv2d conv_last_;
  torch::Tensor position_;  // [C, side, side]: which cheek it is
  model::GroupNorm norm_;
  model::Conv2d conv_hidden_;
  model::GroupNorm norm_out_;
  model::Conv2d conv_out_;
};
TORCH_MODULE(MarkHead);

// [B, columns, h, w] of every place -> [B, columns] of the image.
torch::Tensor of_any_place(const torch::Tensor& marks);

}  // namespace sdtune::train::classifier
