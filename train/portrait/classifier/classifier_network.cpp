#include "train/portrait/classifier/classifier_network.h"

#include <array>

#include "model/core/check.h"
#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::classifier {
namespace {

constexpr std::int64_t kPatch = 2;                                   // px that the first layer sees as one place
constexpr std::array<std::int64_t, 4> kWidths = {32, 64, 128, 256};  // at 32, 16, 8 and 4 places a side
constexpr std::int64_t kGroups = 8;
constexpr double kNormEps = 1e-5;
constexpr std::int64_t kFlatChannels = 64;  // of the last map, before it is flattened
constexpr std::int64_t kLastSide = kClassifierSize / kPatch / 8;

constexpr auto kNumbers = static_cast<std::int64_t>(kNumberNames.size());

model::Conv2d halving(std::int64_t in_channels, std::int64_t out_channels) {
  return model::Conv2d(model::Conv2dOptions{.in_channels = in_channels, .out_channels = out_channels, .stride = 2});
}

}  // namespace

ClassifierNetworkImpl::ClassifierNetworkImpl()
    : conv_in_(model::Conv2dOptions{.in_channels = 3 * kPatch * kPatch, .out_channels = kWidths.front()}),
      norm_in_(kGroups, kWidths.front(), kNormEps),
      downsamplers_(*this, "downsamplers"),
      resnets_(*this, "resnets"),
      norm_out_(kGroups, kWidths.back(), kNormEps),
      conv_out_(model::Conv2dOptions{
          .in_channels = kWidths.back(), .out_channels = kFlatChannels, .kernel = 1, .padding = 0}),
      feature_proj_(kFlatChannels * kLastSide * kLastSide, kFeatures),
      class_head_(kFeatures, column_count()),
      number_head_(kFeatures, kNumbers),
      embedding_head_(kFeatures, kEmbeddingSize) {
  register_module("conv_in", conv_in_);
  register_module("norm_in", norm_in_);
  for (std::size_t level = 1; level < kWidths.size(); ++level) {
    downsamplers_.push_back(halving(kWidths[level - 1], kWidths[level]));
    resnets_.push_back(model::ResnetBlock2D(model::ResnetOptions{
        .in_channels = kWidths[level], .out_channels = kWidths[level], .norm_num_groups = kGroups}));
  }
  register_module("norm_out", norm_out_);
  register_module("conv_out", conv_out_);
  register_module("feature_proj", feature_proj_);
  register_module("class_head", class_head_);
  register_module("number_head", number_head_);
  register_module("embedding_head", embedding_head_);
}

ClassifierOutput ClassifierNetworkImpl::forward(const torch::Tensor& images) {
  model::check_shape(images, {-1, 3, kClassifierSize, kClassifierSize}, "images of the portrait classifier");
  torch::Tensor x = conv_in_(torch::pixel_unshuffle(images, kPatch));
  x = norm_in_->forward_activated(x, model::Activation::kSilu);
  for (std::int64_t level = 0; level < resnets_.size(); ++level) x = resnets_[level](downsamplers_[level](x));
  x = conv_out_(norm_out_->forward_activated(x, model::Activation::kSilu));
  const torch::Tensor features = torch::silu(feature_proj_(torch::silu(x.flatten(1))));
  const torch::Tensor embedding = embedding_head_(features);
  return {class_head_(features), number_head_(features), features,
          embedding / embedding.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-6)};
}

}  // namespace sdtune::train::classifier
