#include "train/optim/adamw_8bit.h"

#include <utility>

#include "train/optim/adamw_library.h"

namespace sdtune::train {

namespace {

AdamWWork work_of(const std::vector<TrainedParameter>& parameters, const std::vector<torch::Tensor>& masters) {
  AdamWWork work;
  std::vector<torch::Tensor> small_masters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor& weight = parameters[i].weight;
    if (weight.numel() < AdamW8bit::kLeastNumbers) {
      work.plain.push_back(parameters[i]);
      small_masters.push_back(masters[i]);
      continue;
    }
    work.coded.push_back(parameters[i]);
    work.coded_memory.push_back({masters[i], fresh_coded_moment(weight.numel(), CodedKind::kMean, weight.device()),
                                 fresh_coded_moment(weight.numel(), CodedKind::kSquare, weight.device())});
  }
  if (!work.plain.empty()) work.plain_memory = fresh_adamw_memory(work.plain, small_masters);
  return work;
}

}  // namespace

AdamW8bit::AdamW8bit(std::vector<TrainedParameter> parameters, const OptimOptions& options)
    : Optimizer(std::move(parameters)),
      work_(work_of(this->parameters(), masters())),
      engine_(make_adamw_engine(work_, options)) {}

NamedStates AdamW8bit::states() const {
  NamedStates states;
  for (std::size_t i = 0; i < work_.plain.size(); ++i) {
    const std::string& name = work_.plain[i].name;
    states.emplace_back(name + kMeanSuffix, work_.plain_memory[i].mean);
    states.emplace_back(name + kSquareSuffix, work_.plain_memory[i].square);
  }
  for (std::size_t i = 0; i < work_.coded.size(); ++i) {
    const std::string& name = work_.coded[i].name;
    const CodedMemory& memory = work_.coded_memory[i];
    states.emplace_back(name + kMeanSuffix, memory.mean.codes);
    states.emplace_back(name + kMeanSuffix + ".scale", memory.mean.scale);
    states.emplace_back(name + kSquareSuffix, memory.square.codes);
    states.emplace_back(name + kSquareSuffix + ".scale", memory.square.scale);
  }
  return states;
}

void AdamW8bit::update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) {
  engine_->step(rates, gradient_factor, updates);
}

}  // namespace sdtune::train
