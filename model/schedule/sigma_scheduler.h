// What the schedulers over sigma share (Euler, Heun, LMS, ...): samples x0 + sigma * noise whose signal is not scaled,
// and a place in the list of sigmas.
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
  // `config` is resolved with the class's `keys`.
  SigmaScheduler(const char* class_name, const Json& config, const ConfigKeys& keys);

  // Begins a run over float32 timesteps and their sigmas, the final one included.
  void begin(const std::vector<double>& timesteps, const std::vector<double>& sigmas);
  torch::Tensor scaled_input(const torch::Tensor& sample, double t) override;
  // The place of the run's current step, found from t at its first call.
  std::int64_t step_index(double t);
  void finish_step() { ++step_index_; }
  // The run's given timesteps, or those of the config's spacing.
  std::vector<double> run_timesteps(std::int64_t num_inference_steps) const;
  // The timesteps of run_timesteps, or of a curve from its first sigma to its last, each with its sigma.
  struct Levels {
    std::vector<double> timesteps;
    std::vector<double> sigmas;  // the final one is not among them
  };
  Levels run_levels(SigmaCurve curve, std::int64_t num_inference_steps) const;

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
