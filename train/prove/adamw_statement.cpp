#include "train/prove/adamw_statement.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace sdtune::train {

void AdamWStatement::update(const std::vector<torch::Tensor>& weights, const std::vector<torch::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  const double rate = options_.learning_rate, beta1 = options_.adam_beta1, beta2 = options_.adam_beta2;
  const double t = static_cast<double>(++updates_);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (means_.size() == i) {
      const torch::Tensor zeros = torch::zeros_like(weights[i], in_double_ ? torch::kFloat64 : torch::kFloat32);
      means_.push_back(zeros);
      squares_.push_back(zeros.clone());
    }
    const torch::Tensor gradient = gradients[i].to(torch::kFloat64);
    const torch::Tensor mean = means_[i].to(torch::kFloat64) * beta1 + gradient * (1 - beta1);
    const torch::Tensor square = squares_[i].to(torch::kFloat64) * beta2 + gradient * gradient * (1 - beta2);
    means_[i].copy_(mean);
    squares_[i].copy_(square);
    const torch::Tensor spread = (square / (1 - std::pow(beta2, t))).sqrt() + options_.adam_epsilon;
    const torch::Tensor decayed = weights[i].to(torch::kFloat64) * (1 - rate * options_.adam_weight_decay);
    weights[i].copy_(decayed - rate * (mean / (1 - std::pow(beta1, t))) / spread);
  }
}

double clip_factor(double norm, double max_norm) {
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace sdtune::train
