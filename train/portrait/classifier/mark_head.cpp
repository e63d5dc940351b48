#include "train/portrait/classifier/mark_head.h"

#include <cmath>

#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::classifier {
namespace {

constexpr std::int64_t kMarkChannels = 48;
constexpr std::int64_t kMarkGroups = 8;
constexpr double kMarkNormEps = 1e-5;

// Columns of the heads of marks that name one.
std::vector<std::int64_t> named_columns() {
  std::vector<std::int64_t> columns;
  for (auto i = static_cast<std::size_t>(Head::kStreak); i < kHeadCount; ++i) {
    const auto head = static_cast<Head>(i);
    const auto classes = static_cast<std::int64_t>(head_info(head).classes.size());
    for (std::int64_t c = 1; c < classes; ++c) columns.push_back(first_column(head) - first_column(Head::kStreak) + c);
  }
  return columns;
}

model::Conv2d mark_conv(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel) {
  return model::Conv2d(model::Conv2dOptions{
      .in_channels = in_channels, .out_channels = out_channels, .kernel = kernel, .padding = kernel / 2});
}

torch::Tensor enlarged(const torch::Tensor& map, std::int64_t side) {
  const auto times = static_cast<double>(side) / static_cast<double>(map.size(2));
  return torch::upsample_bilinear2d(map, {side, side}, /*align_corners=*/false, times, times);
}

}  // namespace

MarkHeadImpl::MarkHeadImpl(const std::vector<std::int64_t>& widths, std::int64_t side)
    : conv_fine_(mark_conv(widths.at(1), kMarkChannels, 3)),
      conv_middle_(mark_conv(widths.at(2), kMarkChannels, 1)),
      conv_last_(mark_conv(widths.back(), kMarkChannels, 1)),
      norm_(kMarkGroups, kMarkChannels, kMarkNormEps),
      conv_hidden_(mark_conv(kMarkChannels, kMarkChannels, 3)),
      norm_out_(kMarkGroups, kMarkChannels, kMarkNormEps),
      conv_out_(mark_conv(kMarkChannels, static_cast<std::int64_t>(named_columns().size()), 1)) {
  register_module("conv_fine", conv_fine_);
  register_module("conv_middle", conv_middle_);
  register_module("conv_last", conv_last_);
  position_ = register_parameter("position", torch::zeros({kMarkChannels, side, side}));
  register_module("norm", norm_);
  register_module("conv_hidden", conv_hidden_);
  register_module("norm_out", norm_out_);
  register_module("conv_out", conv_out_);
}

torch::Tensor MarkHeadImpl::forward(const std::vector<torch::Tensor>& maps) {
  const std::int64_t side = position_.size(1);
  torch::Tensor x = conv_fine_(maps.at(1)) + position_;
  x = x + enlarged(conv_middle_(maps.at(2)), side) + enlarged(conv_last_(maps.back()), side);
  x = conv_hidden_(norm_->forward_activated(x, model::Activation::kSilu));
  x = conv_out_(norm_out_->forward_activated(x, model::Activation::kSilu));
  const torch::Tensor columns = torch::tensor(named_columns(), torch::kInt64).to(x.device());
  return torch::zeros({x.size(0), column_count() - first_column(Head::kStreak), side, side}, x.options())
      .index_copy(1, columns, x);
}

torch::Tensor of_any_place(const torch::Tensor& marks) {
  const torch::Tensor places = marks.flatten(2).to(torch::kFloat32);
  return torch::logsumexp(places, {2}) - std::log(static_cast<double>(places.size(2)));
}

}  // namespace sdtune::train::classifier
