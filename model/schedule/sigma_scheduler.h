// What the Euler schedulers share: samples x0 + sigma * noise whose signal is not scaled, and a place in the list of
// sigmas.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "model/schedule/scheduler.h"
#include "model/schedule/sigma_spacing.h"

namespace sdtune::model {

class SigmaScheduler : public Scheduler {
 public:
  double init_noise_sigma() const override;
  torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                          const torch::Tensor& timesteps) const override;

 protected:
  SigmaScheduler(const char* class_name, const Json& config);

  // Begins a run over float32 timesteps and their sigmas, the final one included.
  void begin(const std::vector<double>& timesteps, const std::vector<double>& sigmas);
  torch::Tensor scaled_input(const torch::Tensor& sample, double t) override;
  // The place of the run's current step, found from t at its first call.
  std::int64_t step_index(double t);
  void finish_step() { ++step_index_; }
  std::vector<double> run_timesteps(std::int64_t num_inference_steps) const;

  const SigmaTable& table() const { return table_; }
  PredictionType prediction_type() const { return prediction_type_; }

 private:
  SigmaTable table_;
  PredictionType prediction_type_;
  std::string spacing_;
  std::int64_t steps_offset_;
  std::int64_t step_index_ = -1;  // -1 until the run's first call
};

}  // namespace sdtune::model
