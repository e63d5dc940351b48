// UniPCMultistepScheduler: Zhao et al., "UniPC: a unified predictor-corrector framework for fast sampling of diffusion
// models", 2023, of orders 1 to 3, with B(h) = h (bh1) or e^h - 1 (bh2), on x0 or on epsilon. The corrector uses each
// output of the model a second time, so a step costs one call.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/schedule/log_snr_scheduler.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

class UniPcMultistepScheduler : public LogSnrScheduler {
 public:
  static constexpr const char* kClassName = "UniPCMultistepScheduler";
  static ConfigKeys keys();
  explicit UniPcMultistepScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  std::int64_t order_of_step(std::int64_t index) const;
  bool is_corrected(std::int64_t index) const;
  // The sample at level `index` + 1, from `sample` at level `index` and the outputs up to there. The predictor's where
  // `output_there` is undefined; with the output at `index` + 1, the corrector's.
  torch::Tensor update(std::int64_t order, std::int64_t index, const torch::Tensor& sample,
                       const torch::Tensor& output_there) const;

  std::int64_t solver_order_;
  bool predicts_x0_;  // what outputs_ are: x0, or epsilon
  bool is_bh1_;

  // The state of a run.
  std::vector<torch::Tensor> outputs_;  // of the last steps, at most solver_order_
  torch::Tensor last_sample_;           // where the last step began, corrected; undefined before the first
  std::int64_t last_order_ = 0;
};

}  // namespace sdtune::model
