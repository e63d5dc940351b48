#include "train/dist/chunk_gradients.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "model/core/chunk_threads.h"

namespace sdtune::train {

using torch::autograd::variable_list;

// Called before autograd adds to the parameter's gradient.
class ChunkHook final : public torch::autograd::FunctionPreHook {
 public:
  ChunkHook(ChunkGradients& chunks, std::size_t index) : chunks_(chunks), index_(index) {}
  variable_list operator()(const variable_list& gradients) override {
    if (chunks_.chunks_ == 1 || !gradients.front().defined()) return gradients;
    chunks_.add(index_, gradients.front());
    return {torch::Tensor()};
  }

 private:
  ChunkGradients& chunks_;
  std::size_t index_;
};

ChunkGradients::ChunkGradients(std::vector<torch::Tensor> weights, Take take)
    : weights_(std::move(weights)), take_(std::move(take)), waiting_(weights_.size()) {}

ChunkGradients::~ChunkGradients() {
  if (!is_hooked_) return;
  for (const torch::Tensor& weight : weights_) torch::autograd::impl::clear_hooks(weight);
}

void ChunkGradients::begin(std::int64_t chunks) {
  chunks_ = chunks;
  if (chunks > 1 && !std::exchange(is_hooked_, true)) {
    for (std::size_t index = 0; index < weights_.size(); ++index) {
      torch::autograd::impl::add_hook(weights_[index], std::make_unique<ChunkHook>(*this, index));
    }
  }
  for (Waiting& waiting : waiting_) waiting = {};
}

void ChunkGradients::finish() {
  for (std::size_t index = 0; index < waiting_.size(); ++index) {
    if (waiting_[index].count > 0) hand_over(index);
  }
}

void ChunkGradients::add(std::size_t index, const torch::Tensor& gradient) {
  {
    const std::lock_guard lock(mutex_);
    Waiting& waiting = waiting_[index];
    waiting.gradients.resize(static_cast<std::size_t>(chunks_));
    torch::Tensor& own = waiting.gradients[static_cast<std::size_t>(model::current_chunk())];
    TORCH_CHECK(!own.defined(), "chunk gradients: parameter ", index, " came twice in one chunk");
    own = gradient;
    if (++waiting.count < chunks_) return;
  }
  hand_over(index);
}

void ChunkGradients::hand_over(std::size_t index) {
  std::vector<torch::Tensor> gradients;
  for (torch::Tensor& gradient : std::exchange(waiting_[index], {}).gradients) {
    if (gradient.defined()) gradients.push_back(std::move(gradient));
  }
  const torch::NoGradGuard no_grad;
  take_(index, gradients);
}

torch::Tensor sum_of_chunks(const std::vector<torch::Tensor>& gradients) {
  if (gradients.size() == 1) return gradients.front().clone();
  const torch::ScalarType dtype = gradients.front().scalar_type();
  // Of two a sum in half precision is rounded once; of more it would lose what is small beside the sum so far.
  const bool is_widened = gradients.size() > 2 && c10::isReducedFloatingType(dtype);
  torch::Tensor sum = (is_widened ? gradients[0].to(torch::kFloat32) : gradients[0]).add(gradients[1]);
  for (std::size_t i = 2; i < gradients.size(); ++i) sum.add_(gradients[i]);
  return sum.to(dtype);
}

}  // namespace sdtune::train
