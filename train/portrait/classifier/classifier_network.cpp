#include "train/portrait/classifier/classifier_network.h"

#include <utility>

#include "model/base/error.h"
#include "model/core/check.h"
#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::classifier {
namespace {

constexpr std::int64_t kPatch = 2;  // px that the first layer sees as one place
constexpr std::int64_t kGroups = 8;
constexpr double kNormEps = 1e-5;
constexpr std::int64_t kFlatChannels = 64;  // of the last map, before it is flattened
constexpr std::int64_t kLastSide = 4;       // places a side of the last map

model::Conv2d halving(std::int64_t in_channels, std::int64_t out_channels) {
  return model::Conv2d(model::Conv2dOptions{.in_channels = in_channels, .out_channels = out_channels, .stride = 2});
}

}  // namespace

ClassifierDesign ClassifierDesign::of_size(std::int64_t size, const std::string& where) {
  if (size == 64) return {};
  if (size == 128) return {portrait::Detail::k128, 128, {24, 48, 96, 160, 256}};
  throw WeightError(where, "is no size of a portrait classifier (got " + std::to_string(size) + "; allowed: 64, 128)");
}

ClassifierNetworkImpl::ClassifierNetworkImpl(ClassifierDesign design)
    : design_(std::move(design)),
      conv_in_(model::Conv2dOptions{.in_channels = 3 * kPatch * kPatch, .out_channels = design_.widths.front()}),
      norm_in_(kGroups, design_.widths.front(), kNormEps),
      downsamplers_(*this, "downsamplers"),
      resnets_(*this, "resnets"),
      norm_out_(kGroups, design_.widths.back(), kNormEps),
      conv_out_(model::Conv2dOptions{
          .in_channels = design_.widths.back(), .out_channels = kFlatChannels, .kernel = 1, .padding = 0}),
      feature_proj_(kFlatChannels * kLastSide * kLastSide, kFeatures),
      class_head_(kFeatures, column_count()),
      number_head_(kFeatures, number_count(design_.detail)),
      embedding_head_(kFeatures, kEmbeddingSize) {
  TORCH_CHECK(design_.size / kPatch == kLastSide << (design_.widths.size() - 1),
              "a portrait classifier's maps end at 4 x 4 places");
  register_module("conv_in", conv_in_);
  register_module("norm_in", norm_in_);
  for (std::size_t level = 1; level < design_.widths.size(); ++level) {
    const std::int64_t width = design_.widths[level];
    downsamplers_.push_back(halving(design_.widths[level - 1], width));
    resnets_.push_back(model::ResnetBlock2D(
        model::ResnetOptions{.in_channels = width, .out_channels = width, .norm_num_groups = kGroups}));
  }
  register_module("norm_out", norm_out_);
  register_module("conv_out", conv_out_);
  register_module("feature_proj", feature_proj_);
  register_module("class_head", class_head_);
  register_module("number_head", number_head_);
  register_module("embedding_head", embedding_head_);
  if (design_.detail == portrait::Detail::k64) return;
  mark_head_ = MarkHead(design_.widths, design_.size / (2 * kPatch));
  register_module("mark_head", mark_head_);
  landmark_head_ = model::Linear(kFlatChannels * kLastSide * kLastSide, 3 * landmark_count(design_.detail));
  register_module("landmark_head", landmark_head_);
}

std::vector<torch::Tensor> ClassifierNetworkImpl::maps(const torch::Tensor& images) {
  model::check_shape(images, {-1, 3, design_.size, design_.size}, "images of the portrait classifier");
  std::vector<torch::Tensor> maps;
  maps.push_back(
      norm_in_->forward_activated(conv_in_(torch::pixel_unshuffle(images, kPatch)), model::Activation::kSilu));
  for (std::int64_t level = 0; level < resnets_.size(); ++level) {
    maps.push_back(resnets_[level](downsamplers_[level](maps.back())));
  }
  return maps;
}

ClassifierOutput ClassifierNetworkImpl::forward(const torch::Tensor& images) {
  const std::vector<torch::Tensor> seen = maps(images);
  const torch::Tensor x = conv_out_(norm_out_->forward_activated(seen.back(), model::Activation::kSilu));
  const torch::Tensor flat = torch::silu(x.flatten(1));
  const torch::Tensor features = torch::silu(feature_proj_(flat));
  const torch::Tensor embedding = embedding_head_(features);
  const std::int64_t batch = images.size(0), landmarks = landmark_count(design_.detail);
  const torch::Tensor places = landmarks > 0 ? landmark_head_(flat).view({batch, landmarks, 3})
                                             : torch::empty({batch, 0, 3}, features.options());
  torch::Tensor logits = class_head_(features), marks;
  if (mark_head_) {
    const std::int64_t first = first_column(Head::kStreak);
    marks = mark_head_(seen);
    logits = torch::cat({logits.narrow(1, 0, first), logits.slice(1, first) + of_any_place(marks)}, 1);
  }
  return {logits,
          number_head_(features),
          features,
          embedding / embedding.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-6),
          places.narrow(2, 0, 2),
          places.select(2, 2),
          marks};
}

}  // namespace sdtune::train::classifier
