// EulerAncestralDiscreteScheduler: an Euler step to a lower noise level than the next, and fresh noise up to it.
#pragma once

#include <torch/types.h>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_scheduler.h"

namespace sdtune::model {

class EulerAncestralDiscreteScheduler : public SigmaScheduler {
 public:
  static constexpr const char* kClassName = "EulerAncestralDiscreteScheduler";
  static ConfigKeys keys();
  explicit EulerAncestralDiscreteScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;
};

}  // namespace sdtune::model
