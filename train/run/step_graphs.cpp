#include "train/run/step_graphs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdtune::train {

namespace {

std::vector<torch::Tensor*> input_tensors(StepInputs& inputs) {
  std::vector<torch::Tensor*> all;
  for (MicroInputs& micro : inputs) {
    for (torch::Tensor* tensor : micro.tensors()) all.push_back(tensor);
  }
  return all;
}

// Of the same values in memory of its own.
StepInputs owned_copy(StepInputs inputs) {
  for (torch::Tensor* tensor : input_tensors(inputs)) *tensor = tensor->clone();
  return inputs;
}

void write_into(StepInputs& there, StepInputs& values) {
  const std::vector<torch::Tensor*> targets = input_tensors(there), sources = input_tensors(values);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i]->copy_(*sources[i], /*non_blocking=*/true);
}

// No number where one of them has none.
double largest_difference(const torch::Tensor& one, const torch::Tensor& other) {
  return (one - other).abs().max().item<double>();
}

}  // namespace

StepGraphs::StepGraphs(torch::Device device, Compute compute, Gradients gradients)
    : device_(device), compute_(std::move(compute)), gradients_(std::move(gradients)) {}

torch::Tensor StepGraphs::compute(StepInputs inputs) {
  Shape& shape = shape_of(inputs);
  shape.last_use = ++clock_;
  if (shape.stays_eager || shape.steps++ < kWarmUp) return compute_(inputs);
  if (!shape.graph) return capture(shape, inputs);
  write_into(shape.inputs, inputs);
  shape.graph->replay();
  ++replays_;
  return shape.losses.clone();
}

std::vector<Problem> StepGraphs::warnings() {
  return std::exchange(warnings_, {});
}

std::size_t StepGraphs::graphs() const {
  return static_cast<std::size_t>(
      std::count_if(shapes_.begin(), shapes_.end(), [](const auto& entry) { return entry.second.graph != nullptr; }));
}

StepGraphs::Shape& StepGraphs::shape_of(StepInputs& inputs) {
  std::string shapes;
  for (MicroInputs& micro : inputs) shapes += micro.shapes() + "\n";
  return shapes_[shapes];
}

void StepGraphs::drop_oldest() {
  if (graphs() < kMostGraphs) return;
  Shape* oldest = nullptr;
  for (auto& [key, shape] : shapes_) {
    if (shape.graph && (oldest == nullptr || shape.last_use < oldest->last_use)) oldest = &shape;
  }
  *oldest = {.steps = kWarmUp,
             .last_use = oldest->last_use,
             .stays_eager = false,
             .graph = nullptr,
             .inputs = {},
             .losses = {}};
}

torch::Tensor StepGraphs::capture(Shape& shape, StepInputs& inputs) {
  const torch::Tensor first = result(compute_(inputs));
  const torch::Tensor losses = compute_(inputs);
  const double own = largest_difference(result(losses), first);
  if (!std::isfinite(own)) return losses;  // fp16 looks for its scale: the next step is compared
  drop_oldest();
  try {
    shape.inputs = owned_copy(inputs);
    shape.graph = model::capture_graph(device_, [&] { shape.losses = compute_(shape.inputs); });
    shape.graph->replay();
  } catch (const c10::Error& error) {
    stay_eager(shape, fmt::format("cannot be captured: {}", error.what_without_backtrace()));
    return compute_(inputs);
  }
  const double other = largest_difference(result(shape.losses), first);
  if (!(other <= own)) {
    stay_eager(shape,
               fmt::format("replayed differs from the eager step by {:.3g}, two eager ones by {:.3g}", other, own));
    return compute_(inputs);
  }
  ++replays_;
  return shape.losses.clone();
}

void StepGraphs::stay_eager(Shape& shape, const std::string& why) {
  warnings_.push_back({"cuda_graphs", "a step " + why, "steps of its shape go on without a graph"});
  shape = {.steps = shape.steps,
           .last_use = shape.last_use,
           .stays_eager = true,
           .graph = nullptr,
           .inputs = {},
           .losses = {}};
}

// The losses and the norm of each gradient, on the device: [2 + gradients] float64.
torch::Tensor StepGraphs::result(const torch::Tensor& losses) const {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> norms = at::_foreach_norm(gradients_(), 2, torch::kFloat32);
  for (torch::Tensor& norm : norms) norm = norm.to(torch::kFloat64).view({1});
  norms.insert(norms.begin(), losses.detach().to(torch::kFloat64));
  return torch::cat(norms);
}

}  // namespace sdtune::train
