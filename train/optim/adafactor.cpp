#include "train/optim/adafactor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdtune::train {

namespace {

constexpr double kDecayExponent = -0.8;
constexpr double kSquareEpsilon = 1e-30;
constexpr double kLargestUpdate = 1.0;  // root mean square

}  // namespace

Adafactor::Adafactor(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : Optimizer(std::move(parameters)), weight_decay_(options.adam_weight_decay) {
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

torch::Tensor Adafactor::inverse_root(Squares& squares, const torch::Tensor& squared_gradient, double beta2) {
  if (squares.all.defined()) return squares.all.mul_(beta2).add_(squared_gradient, 1 - beta2).rsqrt();
  squares.row.mul_(beta2).add_(squared_gradient.mean(-1), 1 - beta2);
  squares.column.mul_(beta2).add_(squared_gradient.mean(-2), 1 - beta2);
  const torch::Tensor of_rows = (squares.row / squares.row.mean(-1, /*keepdim=*/true)).rsqrt_().unsqueeze(-1);
  return of_rows * squares.column.unsqueeze(-2).rsqrt();
}

void Adafactor::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
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

}  // namespace sdtune::train
