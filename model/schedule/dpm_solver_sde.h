// DPMSolverSDEScheduler, known as DPM++ SDE: Lu et al., "DPM-Solver++: fast solver for guided sampling of diffusion
// probabilistic models", 2022, as a single-step SDE solver of order 2. Each step but the last calls the model twice: at
// its start, and at the middle of its way in log sigma.
#pragma once

#include <torch/types.h>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_scheduler.h"

namespace sdtune::model {

// Both halves of a step see the same Brownian motion in sigma. diffusers reads it off a tree (torchsde) that it seeds
// by itself; here each call draws the motion's next increment from the caller's NoiseSource, so the caller's seed holds
// for everything. The law is the same, the numbers of a seed are not.
class DpmSolverSdeScheduler : public SigmaScheduler {
 public:
  static constexpr const char* kClassName = "DPMSolverSDEScheduler";
  static ConfigKeys keys();
  explicit DpmSolverSdeScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor scaled_input(const torch::Tensor& sample, double t) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  // A step from sigma `from` over `middle` to `to`; 0-dim.
  struct Step {
    torch::Tensor from;
    torch::Tensor middle;
    torch::Tensor to;
  };
  Step step_at(std::int64_t index) const;
  bool is_second_half() const { return start_sample_.defined(); }

  SigmaCurve curve_;

  // The first half that waits for its second; undefined where the next call is a first half.
  torch::Tensor start_sample_;  // where it began
  torch::Tensor first_draw_;    // its noise
};

}  // namespace sdtune::model
