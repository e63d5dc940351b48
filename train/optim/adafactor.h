// Adafactor (Shazeer & Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018) with the
// given learning rate: the numbers of transformers' Adafactor with scale_parameter and relative_step off. Of a matrix
// only the means of the squared gradient along rows and along columns are kept; of a convolution, as there, those of
// each kernel.
#pragma once

#include <torch/types.h>

#include <vector>

#include "train/optim/optimizer.h"

namespace sdtune::train {

class Adafactor : public Optimizer {
 public:
  // Takes adam_weight_decay of the options. No first moment; beta2 at update t is 1 - t^-0.8; an update whose root mean
  // square is above 1 is scaled down to it; 1e-30 is added to the squared gradient.
  // on_device: with no number read by the host, which on a CPU costs more and on a GPU does not wait.
  Adafactor(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device);

  // float32: exp_avg_sq_row [.., rows] and exp_avg_sq_col [.., columns] of a parameter [.., rows, columns], else
  // exp_avg_sq.
  NamedStates states() const override;

 private:
  struct Squares {
    torch::Tensor row, column;  // of a parameter of two or more dimensions
    torch::Tensor all;          // of one with fewer
  };

  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;
  void update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates);
  // Takes the squared gradient in, 1 - beta2 or `share` of it, and returns what the gradient is multiplied by.
  static torch::Tensor inverse_root(Squares& squares, const torch::Tensor& squared_gradient, double beta2);
  static torch::Tensor inverse_root(Squares& squares, const torch::Tensor& squared_gradient,
                                    const torch::Tensor& share);
  static torch::Tensor root_of_means(const Squares& squares);

  double weight_decay_;
  bool on_device_;
  std::vector<Squares> squares_;
};

}  // namespace sdtune::train
