#include "train/run/step_graphs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
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

// Where kernels add in an order of their own, runs of one step differ, each number by its own share: a gradient whose
// sums cancel by far more than the loss. A graph is another such run, and so beyond one of two others as often as not.
// It may be beyond them by kSpreads times what they are apart. Two may be close by chance (a quarter of all numbers
// would be refused), so a graph is refused only after more runs: sixteen refuse one number of 100,000. kRounding: a
// captured operator may take another kernel, and rounds otherwise then.
constexpr double kSpreads = 1.5;
constexpr double kRounding = 1e-3;
constexpr int kMostEagerRuns = 16;

// What eager runs of a step said: the least and the most of each of its numbers.
class EagerRuns {
 public:
  explicit EagerRuns(const torch::Tensor& first) : least_(first), most_(first) {}
  void add(const torch::Tensor& run) {
    least_ = least_.minimum(run);
    most_ = most_.maximum(run);
    ++count_;
  }
  int count() const { return count_; }
  bool are_finite() const { return std::isfinite((most_ - least_).max().item<double>()); }
  bool explain(const torch::Tensor& replayed) const { return excess(replayed).max().item<double>() <= 0; }

  // Of the number that is explained least.
  std::string difference(const torch::Tensor& replayed) const {
    const auto worst = excess(replayed).argmax().item<std::int64_t>();
    const auto number = [worst](const torch::Tensor& of) { return of[worst].item<double>(); };
    return fmt::format(
        "replayed differs from the eager step: a loss or a gradient's norm is {:.6g} in place of {:.6g} to {:.6g}",
        number(replayed), number(least_), number(most_));
  }

 private:
  // By how much more each number is beyond the eager ones than it may be; NaN where it is no number.
  torch::Tensor excess(const torch::Tensor& replayed) const {
    const torch::Tensor beyond = (replayed - most_).maximum(least_ - replayed);
    return beyond - kSpreads * (most_ - least_) - kRounding * most_.abs();
  }

  torch::Tensor least_, most_;
  int count_ = 1;
};

}  // namespace

StepGraphs::StepGraphs(torch::Device device, Compute compute, Gradients gradients)
    : device_(device), compute_(std::move(compute)), gradients_(std::move(gradients)) {}

torch::Tensor StepGraphs::compute(StepInputs inputs) {
  Shape& shape = shape_of(inputs);
  shape.last_use = ++clock_;
  if (shape.stays_eager || shape.steps++ < kWarmUp) return compute_(inputs);
  if (!shape.graph) return make_room() ? capture(shape, inputs) : compute_(inputs);
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

// A graph that is in use stays: with one shape more than graphs, each of them would else be captured again and again,
// at the price of four steps.
bool StepGraphs::make_room() {
  if (graphs() < kMostGraphs) return true;
  Shape* oldest = nullptr;
  for (auto& [key, shape] : shapes_) {
    if (shape.graph && (oldest == nullptr || shape.last_use < oldest->last_use)) oldest = &shape;
  }
  if (clock_ - oldest->last_use <= kIdleSteps) {
    if (!std::exchange(said_full_, true)) {
      warnings_.push_back({"cuda_graphs", fmt::format("steps have more than {} shapes", kMostGraphs),
                           "those of further shapes go on without a graph as long as the others are in use"});
    }
    return false;
  }
  *oldest = {.steps = kWarmUp,
             .last_use = oldest->last_use,
             .stays_eager = false,
             .graph = nullptr,
             .inputs = {},
             .losses = {}};
  return true;
}

const model::DeviceGraph* StepGraphs::any_graph() const {
  for (const auto& [key, shape] : shapes_) {
    if (shape.graph) return shape.graph.get();
  }
  return nullptr;
}

torch::Tensor StepGraphs::capture(Shape& shape, StepInputs& inputs) {
  EagerRuns eager(result(compute_(inputs)));
  const torch::Tensor losses = compute_(inputs);
  eager.add(result(losses));
  if (!eager.are_finite()) return losses;  // fp16 looks for its scale: the next step is compared
  try {
    shape.inputs = owned_copy(inputs);
    shape.graph = model::capture_graph(
        device_, [&] { shape.losses = compute_(shape.inputs); }, any_graph());
    shape.graph->replay();
  } catch (const c10::Error& error) {
    stay_eager(shape, fmt::format("cannot be captured: {}", error.what_without_backtrace()));
    return compute_(inputs);
  } catch (const std::runtime_error& error) {  // a launch of our own kernels: their library knows no c10::Error
    stay_eager(shape, fmt::format("cannot be captured: {}", error.what()));
    return compute_(inputs);
  }
  const torch::Tensor replayed = result(shape.losses);
  while (!eager.explain(replayed)) {
    if (eager.count() == kMostEagerRuns) {
      stay_eager(shape, eager.difference(replayed));
      return compute_(inputs);
    }
    eager.add(result(compute_(inputs)));
  }
  if (eager.count() > 2) shape.graph->replay();  // the gradients are those of the last eager run
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
