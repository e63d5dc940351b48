#include "train/optim/adamw.h"

#include <utility>

#include "train/optim/optimizer_kernels.h"

namespace sdtune::train {

std::vector<AdamWMemory> fresh_adamw_memory(const std::vector<TrainedParameter>& parameters,
                                            const std::vector<torch::Tensor>& masters) {
  const std::vector<torch::Tensor> means = zeros_like_all(parameters);
  const std::vector<torch::Tensor> squares = zeros_like_all(parameters);
  std::vector<AdamWMemory> memory;
  memory.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) memory.push_back({masters[i], means[i], squares[i]});
  return memory;
}

std::unique_ptr<AdamWEngine> make_adamw_engine(const AdamWWork& work, const OptimOptions& options) {
  if (optimizer_kernels(work.device()) != nullptr) return make_cuda_adamw(work, options);
  return work.device().is_cpu() ? make_cpu_adamw(work, options) : make_library_adamw(work, options);
}

AdamW::AdamW(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : Optimizer(std::move(parameters)),
      memory_(fresh_adamw_memory(this->parameters(), masters())),
      engine_(make_adamw_engine({this->parameters(), memory_, {}, {}}, options)) {}

NamedStates AdamW::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    states.emplace_back(parameters()[i].name + kMeanSuffix, memory_[i].mean);
    states.emplace_back(parameters()[i].name + kSquareSuffix, memory_[i].square);
  }
  return states;
}

void AdamW::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  engine_->step(rates, gradient_factor, updates);
}

}  // namespace sdtune::train
