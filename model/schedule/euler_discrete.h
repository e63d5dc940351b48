// EulerDiscreteScheduler: algorithm 2 of Karras et al., "Elucidating the design space of diffusion-based generative
// models", 2022, without its optional churn.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_scheduler.h"

namespace sdtune::model {

class EulerDiscreteScheduler : public SigmaScheduler {
 public:
  static constexpr const char* kClassName = "EulerDiscreteScheduler";
  static ConfigKeys keys();
  explicit EulerDiscreteScheduler(const Json& config);  // resolved with keys()

 protected:
  std::string fault_of_given_timesteps() const override;
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  // The model is given log sigma / 4 instead of timesteps.
  bool is_continuous() const;
  SigmaCurve curve_;
};

}  // namespace sdtune::model
