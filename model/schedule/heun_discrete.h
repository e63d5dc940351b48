// HeunDiscreteScheduler: algorithm 1 of Karras et al., "Elucidating the design space of diffusion-based generative
// models", 2022, without its optional churn. Each step but the last calls the model twice: an Euler step, then one with
// the mean of the derivatives at both ends.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_scheduler.h"

namespace sdtune::model {

class HeunDiscreteScheduler : public SigmaScheduler {
 public:
  static constexpr const char* kClassName = "HeunDiscreteScheduler";
  static ConfigKeys keys();
  explicit HeunDiscreteScheduler(const Json& config);  // resolved with keys()

 protected:
  std::string fault_of_given_timesteps() const override;
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  SigmaCurve curve_;
  double clip_range_;

  // The Euler step that waits for its correction; undefined where the next call is an Euler step.
  torch::Tensor start_sample_;      // where it began
  torch::Tensor start_derivative_;  // the derivative there
};

}  // namespace sdtune::model
