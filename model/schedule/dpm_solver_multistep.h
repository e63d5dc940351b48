// DPMSolverMultistepScheduler: Lu et al., "DPM-Solver++: fast solver for guided sampling of diffusion probabilistic
// models", 2022, of orders 1 to 3, as an ODE (dpmsolver++) and as an SDE (sde-dpmsolver++).
#pragma once

#include <torch/types.h>

#include <string>

#include <vector>

#include "model/schedule/log_snr_scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class DpmSolverMultistepScheduler : public LogSnrScheduler {
 public:
  static constexpr const char* kClassName = "DPMSolverMultistepScheduler";
  static ConfigKeys keys();
  explicit DpmSolverMultistepScheduler(const Json& config);  // resolved with keys()

 protected:
  std::string fault_of_given_timesteps() const override;
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  std::int64_t order_of_step(std::int64_t index) const;
  // How many timesteps from 0 upwards have a lambda that lambda_min_clipped allows. ConfigError for none.
  std::int64_t timestep_limit() const;
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

  std::int64_t solver_order_;
  bool is_sde_;
  bool is_heun_;

  std::vector<torch::Tensor> outputs_;  // x0 predicted by the run's last steps, at most solver_order_
};

}  // namespace sdtune::model
