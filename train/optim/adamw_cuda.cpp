#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_fused_adamw.h>

#include <map>

#include "train/optim/adamw_engine.h"

namespace sdtune::train {

namespace {

// The parameters of one learning rate, as the lists that the fused kernel takes.
struct TensorLists {
  std::vector<torch::Tensor> masters, gradients, means, squares;
  std::vector<torch::Tensor> narrow_gradients, wide_gradients;  // of another dtype than float32, and room to widen them
  std::vector<torch::Tensor> weights, weight_masters;           // weights that are not their own master
};

class CudaAdamW : public AdamWEngine {
 public:
  CudaAdamW(const std::vector<TrainedParameter>& parameters, const std::vector<AdamWMemory>& memory,
            const OptimOptions& options)
      : options_(options) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      append(groups_[parameters[i].rate_group], parameters[i], memory[i]);
  }

  // Everything stays on the device: a skipped step is decided there.
  void step(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override {
    const torch::Tensor finite = torch::isfinite(gradient_factor);
    updates.add_(finite);
    const torch::Tensor t = updates.to(torch::kFloat32);
    const torch::Tensor found_inf = finite.logical_not().to(torch::kFloat32);
    const torch::Tensor grad_scale = gradient_factor.reciprocal();  // the kernel divides by it
    for (auto& [group, lists] : groups_) {
      if (!lists.wide_gradients.empty()) at::_foreach_copy_(lists.wide_gradients, lists.narrow_gradients);
      const std::vector<torch::Tensor> steps(lists.masters.size(), t);
      at::_fused_adamw_(lists.masters, lists.gradients, lists.means, lists.squares, /*max_exp_avg_sqs=*/{}, steps,
                        rates.select(0, group).to(torch::kFloat32), options_.adam_beta1, options_.adam_beta2,
                        options_.adam_weight_decay, options_.adam_epsilon, /*amsgrad=*/false, /*maximize=*/false,
                        grad_scale, found_inf);
      if (!lists.weights.empty()) at::_foreach_copy_(lists.weights, lists.weight_masters);
    }
  }

 private:
  static void append(TensorLists& lists, const TrainedParameter& parameter, const AdamWMemory& memory) {
    lists.masters.push_back(memory.master);
    lists.means.push_back(memory.mean);
    lists.squares.push_back(memory.square);
    if (parameter.gradient.scalar_type() == torch::kFloat32) {
      lists.gradients.push_back(parameter.gradient);
    } else {
      lists.gradients.push_back(torch::empty_like(memory.master));
      lists.wide_gradients.push_back(lists.gradients.back());
      lists.narrow_gradients.push_back(parameter.gradient);
    }
    const torch::Tensor weight = parameter.weight.detach();
    if (weight.scalar_type() != torch::kFloat32) {
      lists.weights.push_back(weight);
      lists.weight_masters.push_back(memory.master);
    }
  }

  OptimOptions options_;
  std::map<std::int64_t, TensorLists> groups_;
};

}  // namespace

std::unique_ptr<AdamWEngine> make_cuda_adamw(const std::vector<TrainedParameter>& parameters,
                                             const std::vector<AdamWMemory>& memory, const OptimOptions& options) {
  return std::make_unique<CudaAdamW>(parameters, memory, options);
}

}  // namespace sdtune::train
