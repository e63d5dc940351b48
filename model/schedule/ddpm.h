// DDPMScheduler: ancestral sampling of Ho et al., "Denoising diffusion probabilistic models", 2020.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class DdpmScheduler : public Scheduler {
 public:
  static constexpr const char* kClassName = "DDPMScheduler";
  static ConfigKeys keys();
  explicit DdpmScheduler(const Json& config);  // resolved with keys()

 protected:
  std::string fault_of_given_timesteps() const override { return ""; }
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  // The factor of the fresh noise; the arguments are 0-dim.
  torch::Tensor noise_scale(const torch::Tensor& alpha_prod, const torch::Tensor& alpha_prod_previous) const;

  PredictionType prediction_type_;
  std::string spacing_;
  std::int64_t steps_offset_;
  std::string variance_type_;
  double clip_range_;  // infinite for no clipping
};

}  // namespace sdtune::model
