// DDIMScheduler: Song et al., "Denoising diffusion implicit models", 2021.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class DdimScheduler : public Scheduler {
 public:
  static constexpr const char* kClassName = "DDIMScheduler";
  static ConfigKeys keys();
  explicit DdimScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  PredictionType prediction_type_;
  std::string spacing_;
  std::int64_t steps_offset_;
  double clip_range_;                  // infinite for no clipping
  torch::Tensor final_alpha_cumprod_;  // abar after the last step
};

}  // namespace sdtune::model
