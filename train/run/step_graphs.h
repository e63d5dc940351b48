// Gradients of a step by CUDA graphs: forward and backward of all its micro-batches are captured once for each shape of
// its inputs, and replayed from then on. The update that follows is a few launches and stays outside.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/core/device_graph.h"
#include "train/run/step_inputs.h"

namespace sdtune::train {

using StepInputs = std::vector<MicroInputs>;  // a micro-batch each

class StepGraphs {
 public:
  // The gradients of a step, into memory that stays, and its two losses: [2].
  using Compute = std::function<torch::Tensor(const StepInputs&)>;
  // Those gradients, as they are now.
  using Gradients = std::function<std::vector<torch::Tensor>()>;

  static constexpr std::int64_t kWarmUp = 3;        // eager steps of a shape before it is captured
  static constexpr std::size_t kMostGraphs = 4;     // of as many shapes
  static constexpr std::uint64_t kIdleSteps = 100;  // a graph that was not used for longer makes room for another

  StepGraphs(torch::Device device, Compute compute, Gradients gradients);

  // What `compute` says of these inputs. A shape's first steps are eager. The next is computed twice eagerly and once
  // by its graph. Where the graph's losses or gradients differ from the eager ones by more than these from each other
  // explain, also when there are more of these, and where it cannot be captured, the shape stays eager and warnings()
  // says so; once also that there are more shapes than graphs.
  torch::Tensor compute(StepInputs inputs);

  // Gives back what the graphs keep; shapes begin anew.
  void clear() { shapes_.clear(); }

  // Since the last call.
  std::vector<Problem> warnings();
  // Steps that were replayed, and graphs that are kept.
  std::int64_t replays() const { return replays_; }
  std::size_t graphs() const;

 private:
  struct Shape {
    std::int64_t steps = 0;
    std::uint64_t last_use = 0;
    bool stays_eager = false;
    std::unique_ptr<model::DeviceGraph> graph;
    StepInputs inputs;     // what the graph reads
    torch::Tensor losses;  // what it writes, beside the gradients
  };

  Shape& shape_of(StepInputs& inputs);
  bool make_room();  // for one more graph
  const model::DeviceGraph* any_graph() const;
  torch::Tensor capture(Shape& shape, StepInputs& inputs);
  void stay_eager(Shape& shape, const std::string& why);
  torch::Tensor result(const torch::Tensor& losses) const;

  torch::Device device_;
  Compute compute_;
  Gradients gradients_;
  std::map<std::string, Shape> shapes_;
  std::vector<Problem> warnings_;
  std::uint64_t clock_ = 0;
  std::int64_t replays_ = 0;
  bool said_full_ = false;
};

}  // namespace sdtune::train
