// The classifier: a small residual CNN that reads a portrait's attributes, and who it is.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/nn/linear.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"
#include "model/nn/resnet_block.h"
#include "train/portrait/classifier/mark_head.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::classifier {

inline constexpr std::int64_t kFeatures = 256;
inline constexpr std::int64_t kEmbeddingSize = 128;

// What a classifier reads, and how large it is; its file says which.
struct ClassifierDesign {
  portrait::Detail detail = portrait::Detail::k64;        // of the renders that it reads
  std::int64_t size = 64;                                 // px a side
  std::vector<std::int64_t> widths = {32, 64, 128, 256};  // of its maps: size / 2 places a side, each next one half

  // The one for images of that size. Throws WeightError naming `where` for any but 64 and 128.
  static ClassifierDesign of_size(std::int64_t size, const std::string& where);
};

struct ClassifierOutput {
  torch::Tensor logits;     // [B, column_count()], the heads side by side
  torch::Tensor numbers;    // [B, number_count(detail)], in the units of portrait::Identity
  torch::Tensor features;   // [B, kFeatures], what classes, numbers and embedding are read from
  torch::Tensor embedding;  // [B, kEmbeddingSize] of length 1: near for one person, far for two, whatever they wear
  torch::Tensor landmarks;  // [B, landmark_count(detail), 2], as in Labels
  torch::Tensor landmark_logits;  // [B, landmark_count(detail)], above 0 where it can be seen
  torch::Tensor marks;            // [B, C, h, w] of MarkHead; undefined where a design has none
};

// About 2.5 million float32 weights. The first layer sees 2 x 2 pixels as one place, so that the widest maps, where a
// CPU is slowest, are half as wide as the image; halvings with a residual block each follow, down to 4 x 4 (He et al.,
// "Identity mappings in deep residual networks", 2016, with group norms). The last map is flattened, not averaged:
// which side of the head something is on matters. Landmarks are read from that map itself, marks also from finer ones.
class ClassifierNetworkImpl : public torch::nn::Module {
 public:
  explicit ClassifierNetworkImpl(ClassifierDesign design = {});

  // images [B, 3, size, size] in [-1, 1]
  ClassifierOutput forward(const torch::Tensor& images);
  // What it sees on the way, of the same images: a map [B, C, h, w] a width.
  std::vector<torch::Tensor> maps(const torch::Tensor& images);

  const ClassifierDesign& design() const { return design_; }

 private:
  ClassifierDesign design_;
  model::Conv2d conv_in_;
  model::GroupNorm norm_in_;
  model::ModuleList<model::Conv2d> downsamplers_;
  model::ModuleList<model::ResnetBlock2D> resnets_;
  model::GroupNorm norm_out_;
  model::Conv2d conv_out_;
  model::Linear feature_proj_;
  model::Linear class_head_;
  model::Linear number_head_;
  model::Linear embedding_head_;
  model::Linear landmark_head_ = nullptr;  // null: this detail has none
  MarkHead mark_head_ = nullptr;           // of Detail::k128
};
TORCH_MODULE(ClassifierNetwork);

}  // namespace sdtune::train::classifier
