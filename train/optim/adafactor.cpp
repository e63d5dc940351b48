#include "train/optim/adafactor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/optim/device_step.h"

namespace sdtune::train {

namespace {

constexpr double kDecayExponent = -0.8;
constexpr double kSquareEpsilon = 1e-30;
constexpr double kLargestUpdate = 1.0;  // root mean square

}  // namespace

Adafactor::Adafactor(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device)
    : Optimizer(std::move(parameters)), weight_decay_(options.adam_weight_decay), on_device_(on_device) {
  for (const torch::Tensor& master : masters()) {
    Squares squares;
    if (master.dim() < 2) {
      squares.all = torch::zeros(master.sizes(), master.options());
    } else {
      std::vector<std::int64_t> row = master.sizes().vec(), column = row;
      row.pop_back();
      column.erase(column.end() - 2);
      squares.row = torch::zeros(row, master.options());
      squares.column = torch::zeros(column, master.options());
    }
    squares_.push_back(std::move(squares));
  }
}

NamedStates Adafactor::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < squares_.size(); ++i) {
    const std::string name = parameters()[i].name + ".exp_avg_sq";
    if (squares_[i].all.defined()) {
      states.emplace_back(name, squares_[i].all);
    } else {
      states.emplace_back(name + "_row", squares_[i].row);
      states.emplace_back(name + "_col", squares_[i].column);
    }
  }
  return states;
}

torch::Tensor Adafactor::root_of_means(const Squares& squares) {
  if (squares.all.defined()) return squares.all.rsqrt();
  const torch::Tensor of_rows = (squares.row / squares.row.mean(-1, /*keepdim=*/true)).rsqrt_().unsqueeze(-1);
  return of_rows * squares.column.unsqueeze(-2).rsqrt();
}

torch::Tensor Adafactor::inverse_root(Squares& squares, const torch::Tensor& squared_gradient, double beta2) {
  if (squares.all.defined()) {
    squares.all.mul_(beta2).add_(squared_gradient, 1 - beta2);
  } else {
    squares.row.mul_(beta2).add_(squared_gradient.mean(-1), 1 - beta2);
    squares.column.mul_(beta2).add_(squared_gradient.mean(-2), 1 - beta2);
  }
  return root_of_means(squares);
}

torch::Tensor Adafactor::inverse_root(Squares& squares, const torch::Tensor& squared_gradient,
                                      const torch::Tensor& share) {
  if (squares.all.defined()) {
    squares.all.lerp_(squared_gradient, share);
  } else {
    squares.row.lerp_(squared_gradient.mean(-1), share);
    squares.column.lerp_(squared_gradient.mean(-2), share);
  }
  return root_of_means(squares);
}

void Adafactor::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  if (on_device_) return update_on_device(rates, gradient_factor, updates);
  const std::optional<HostStep> step = read_step(rates, gradient_factor);
  if (!step) return;
  updates.add_(1);
  const double beta2 = 1 - std::pow(static_cast<double>(updates.item<std::int64_t>()), kDecayExponent);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const double rate = step->rates[static_cast<std::size_t>(parameters()[i].rate_group)];
    const torch::Tensor gradient = parameters()[i].gradient.to(torch::kFloat32) * step->gradient_factor;
    torch::Tensor change = inverse_root(squares_[i], gradient.square() + kSquareEpsilon, beta2) * gradient;
    const torch::Tensor size = change.norm() / std::sqrt(static_cast<double>(change.numel()));
    change.div_((size / kLargestUpdate).clamp_min(1.0)).mul_(rate);
    torch::Tensor master = masters()[i];
    master.add_(master, -weight_decay_ * rate).sub_(change);
  }
  refresh_weights();
}

void Adafactor::update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor,
                                 torch::Tensor& updates) {
  const DeviceStep step(rates, gradient_factor);
  updates.add_(step.counts());
  // 1 - beta2 is t^-0.8; before the first update t is 0, and the share 0 all the same.
  const torch::Tensor share =
      updates.clamp_min(1).to(torch::kFloat64).pow(kDecayExponent).to(torch::kFloat32) * step.counts();
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const torch::Tensor rate = step.rate(parameters()[i].rate_group);
    const torch::Tensor gradient = step.gradient(parameters()[i]);
    const torch::Tensor root = inverse_root(squares_[i], gradient.square() + kSquareEpsilon, share);
    // Of squares that are still 0, where the first step of all is skipped, the root is infinite.
    torch::Tensor change = torch::where(step.counts(), root * gradient, 0.0);
    const torch::Tensor size = change.norm() / std::sqrt(static_cast<double>(change.numel()));
    change.div_((size / kLargestUpdate).clamp_min(1.0));
    torch::Tensor master = masters()[i];
    master.sub_((master * weight_decay_).add_(change).mul_(rate));
  }
  refresh_weights();
}

}  // namespace sdtune::train
