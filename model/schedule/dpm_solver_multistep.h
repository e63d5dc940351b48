// DPMSolverMultistepScheduler: Lu et al., "DPM-Solver++: fast solver for guided sampling of diffusion probabilistic
// models", 2022, of orders 1 to 3, as an ODE (dpmsolver++) and as an SDE (sde-dpmsolver++).
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_spacing.h"

namespace sdtune::model {

class DpmSolverMultistepScheduler : public Scheduler {
 public:
  static constexpr const char* kClassName = "DPMSolverMultistepScheduler";
  static ConfigKeys keys();
  explicit DpmSolverMultistepScheduler(const Json& config);  // resolved with keys()

  torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                          const torch::Tensor& timesteps) const override;

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  // Alpha, sigma and their log ratio lambda at a place in sigmas_; 0-dim.
  struct Level {
    torch::Tensor alpha;
    torch::Tensor sigma;
    torch::Tensor lambda;
  };
  Level level_at(std::int64_t index) const;
  std::int64_t order_of_step(std::int64_t index) const;
  std::vector<double> run_timesteps(std::int64_t num_inference_steps) const;
  // The first and second differences of the outputs so far, divided by the steps in lambda; undefined above `order`.
  struct Differences {
    torch::Tensor first;
    torch::Tensor second;
  };
  Differences differences(std::int64_t order, std::int64_t index, const torch::Tensor& h) const;
  // The solution of the ODE at the next level; of the SDE, with `draw` standard normal.
  torch::Tensor solve_ode(std::int64_t order, std::int64_t index, const torch::Tensor& sample) const;
  torch::Tensor solve_sde(std::int64_t order, std::int64_t index, const torch::Tensor& sample,
                          const torch::Tensor& draw) const;

  torch::Tensor alphas_cumprod_;
  SigmaTable table_;
  PredictionType prediction_type_;
  SigmaCurve curve_;
  std::int64_t solver_order_;
  bool is_sde_;
  bool is_heun_;

  // The state of a run.
  std::int64_t step_index_ = -1;        // -1 until the first step
  std::vector<torch::Tensor> outputs_;  // x0 predicted by the last steps, at most solver_order_
};

}  // namespace sdtune::model
