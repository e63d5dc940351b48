// LCMScheduler: Luo et al., "Latent consistency models: synthesizing high-resolution images with few-step inference",
// 2023. Each call of a consistency model gives x0 at once; between the steps noise is added again.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class LcmScheduler : public Scheduler {
 public:
  static constexpr const char* kClassName = "LCMScheduler";
  static ConfigKeys keys();
  explicit LcmScheduler(const Json& config);  // resolved with keys()

 protected:
  std::string fault_of_given_timesteps() const override { return ""; }
  // A run without given timesteps visits some of the `original_inference_steps` timesteps that the model was distilled
  // on, so it has at most as many steps; ConfigError otherwise.
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  PredictionType prediction_type_;
  std::int64_t original_steps_;
  double timestep_scaling_;
  double clip_range_;
};

}  // namespace sdtune::model
