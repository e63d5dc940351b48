// What the solvers over lambda = log(alpha / sigma), half the log of the signal-to-noise ratio, share (DPM-Solver,
// UniPC, DEIS): samples alpha * x0 + sigma * noise with alpha^2 + sigma^2 = 1, and a place in the list of noise levels.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "model/schedule/scheduler.h"
#include "model/schedule/scheduler_config.h"
#include "model/schedule/sigma_spacing.h"

namespace sdtune::model {

class LogSnrScheduler : public Scheduler {
 public:
  torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                          const torch::Tensor& timesteps) const override;

 protected:
  // Runs of fewer steps end with lower orders in DPM-Solver and DEIS (lower_order_final).
  static constexpr std::int64_t kShortRun = 15;

  // The keys that these solvers share besides betas, spacing and the curve of sigmas.
  static ConfigKeys solver_keys();

  // `config` is resolved with the class's `keys`.
  LogSnrScheduler(const char* class_name, const Json& config, const ConfigKeys& keys);

  // Alpha, sigma and lambda at a place in sigmas(), whose entries are sigma / alpha; 0-dim.
  struct Level {
    torch::Tensor alpha;
    torch::Tensor sigma;
    torch::Tensor lambda;
  };
  Level level_at(std::int64_t index) const;

  // The run's given timesteps, or those of the config's spacing below `limit`; one more is spaced than there are steps,
  // for the last one's end.
  std::vector<double> run_timesteps(std::int64_t limit, std::int64_t num_inference_steps) const;
  // The levels of a run over all of the table, as UniPC and DEIS have them: by the config's spacing or curve.
  struct RunLevels {
    std::vector<double> timesteps;
    std::vector<double> sigmas;  // without the final one
    double lowest = 0;           // sigma of the table's first timestep, or where the curve ends
  };
  // Throws ConfigError where the solver, of order 2 or 3, would divide by 0 between two of them.
  RunLevels run_levels(std::int64_t num_inference_steps) const;
  // Begins a run over integer timesteps and their sigmas, the final one included.
  void begin(const std::vector<double>& timesteps, const std::vector<double>& sigmas);
  // The place of the run's current step, found from t at its first call.
  std::int64_t step_index(double t);
  void finish_step() { ++step_index_; }

  // alphas_cumprod with a last entry above 0.
  const torch::Tensor& alphas_cumprod() const { return alphas_cumprod_; }
  const SigmaTable& table() const { return table_; }
  PredictionType prediction_type() const { return prediction_type_; }
  SigmaCurve curve() const { return curve_; }

 private:
  torch::Tensor alphas_cumprod_;
  SigmaTable table_;
  PredictionType prediction_type_;
  SigmaCurve curve_;
  std::int64_t step_index_ = -1;  // -1 until the run's first step
};

}  // namespace sdtune::model
