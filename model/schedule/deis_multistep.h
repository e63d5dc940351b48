// DEISMultistepScheduler: Zhang and Chen, "Fast sampling of diffusion models with exponential integrator", 2022, of
// orders 1 to 3. The predicted noise is a polynomial in log(rho), rho = sigma / alpha, between the steps so far, and
// the ODE over rho is integrated exactly with it (log-rho).
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/schedule/log_snr_scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class DeisMultistepScheduler : public LogSnrScheduler {
 public:
  static constexpr const char* kClassName = "DEISMultistepScheduler";
  static ConfigKeys keys();
  explicit DeisMultistepScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  std::int64_t order_of_step(std::int64_t index) const;
  // sigma / alpha at a place in sigmas(), 0-dim, float64.
  torch::Tensor rho_at(std::int64_t index) const;
  // The sample at level `index` + 1, from `sample` at level `index` and the last outputs.
  torch::Tensor first_order(std::int64_t index, const torch::Tensor& sample) const;
  torch::Tensor higher_order(std::int64_t order, std::int64_t index, const torch::Tensor& sample) const;

  std::int64_t solver_order_;

  std::vector<torch::Tensor> outputs_;  // noise predicted by the run's last steps, at most solver_order_
};

}  // namespace sdtune::model
