// LMSDiscreteScheduler: linear multistep (Adams-Bashforth) steps in sigma. The derivatives of the last steps, at most
// four, are joined by a polynomial, which is integrated to the next sigma.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_scheduler.h"

namespace sdtune::model {

class LmsDiscreteScheduler : public SigmaScheduler {
 public:
  static constexpr const char* kClassName = "LMSDiscreteScheduler";
  static ConfigKeys keys();
  explicit LmsDiscreteScheduler(const Json& config);  // resolved with keys()

 protected:
  void start_run(std::int64_t num_inference_steps) override;
  torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                        const StepOptions& options) override;

 private:
  // The integral from sigma `index` to the next of the polynomial that is 1 at sigma `index - ago` and 0 at the other
  // ones of the last `order`.
  double coefficient(std::int64_t order, std::int64_t index, std::int64_t ago) const;

  SigmaCurve curve_;
  std::vector<torch::Tensor> derivatives_;  // of the run's last steps, the newest last
};

}  // namespace sdtune::model
