// PNDMScheduler: Liu et al., "Pseudo numerical methods for diffusion models on manifolds", 2022: linear multistep
// (PLMS), after a Runge-Kutta warm-up (PRK) unless skip_prk_steps.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class PndmScheduler : public Scheduler {
 public:
  static constexpr const char* kClassName = "PNDMScheduler";
  static ConfigKeys keys();
  explicit PndmScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  torch::Tensor runge_kutta_step(const torch::Tensor& model_output, std::int64_t t, const torch::Tensor& sample);
  torch::Tensor multistep_step(const torch::Tensor& model_output, std::int64_t t, const torch::Tensor& sample);
  // The multistep combination of the outputs so far.
  torch::Tensor combined_output() const;
  // Formula (9) of the paper.
  torch::Tensor transfer(const torch::Tensor& sample, std::int64_t t, std::int64_t previous,
                         const torch::Tensor& model_output) const;
  std::int64_t stride() const;

  PredictionType prediction_type_;
  std::string spacing_;
  std::int64_t steps_offset_;
  bool skip_prk_steps_;
  torch::Tensor final_alpha_cumprod_;  // abar after the last step

  // The state of a run.
  std::vector<std::int64_t> prk_timesteps_;
  std::int64_t counter_ = 0;
  std::vector<torch::Tensor> outputs_;  // the last ones, at most 4
  torch::Tensor accumulated_;           // of a Runge-Kutta step; undefined between them
  torch::Tensor start_sample_;          // the sample that a step of several calls began with
};

}  // namespace sdtune::model
