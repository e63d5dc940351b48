// The reverse process: from noise to a sample in a few calls of the model. Class names, config keys and numbers are
// diffusers'.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/schedule/noise_schedule.h"
#include "model/schedule/noise_source.h"
#include "model/schedule/prediction.h"

namespace sdtune::model {

// What a caller may choose at each step.
struct StepOptions {
  double eta = 0.0;  // DDIM's share of fresh noise, 0..1; the other schedulers have no such choice and ignore it
};

// One denoising run is set_timesteps(n), then for each t of timesteps(): scale_model_input, the model, step. A
// scheduler keeps the state of its run, so one object serves one run at a time. Call contracts (step before
// set_timesteps, a t that is not in timesteps(), shapes that differ) fail as c10::Error.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Diffusers' class name, and every config key with its value; "_use_default_values" lists the keys that were not
  // given.
  const std::string& class_name() const { return class_name_; }
  const Json& config() const { return config_; }
  const NoiseSchedule& noise_schedule() const { return noise_schedule_; }

  // Starts a run of `num_inference_steps` (1..num_train_timesteps; ConfigError otherwise).
  void set_timesteps(std::int64_t num_inference_steps);
  // Starts a run over these timesteps, descending within 0..num_train_timesteps - 1, instead of the config's spacing.
  // ConfigError for other ones, and where diffusers' class takes none.
  void set_timesteps(const std::vector<std::int64_t>& timesteps);
  // Where in timesteps() the run begins, between set_timesteps and the first add_noise or step (diffusers' name). Else
  // it is the place of the first t, of which there may be several: timesteps of a curve of sigmas are rounded.
  void set_begin_index(std::int64_t begin_index);
  // [N] int64 or float32, CPU, descending; N may exceed the number of steps (PNDM repeats some).
  const torch::Tensor& timesteps() const { return timesteps_; }
  // [N + 1] float32, CPU; undefined for the schedulers that have none.
  const torch::Tensor& sigmas() const { return sigmas_; }
  // The standard deviation of the noise that a run starts from.
  virtual double init_noise_sigma() const { return 1.0; }

  // The model's input for x_t. [B, ...] -> [B, ...]
  torch::Tensor scale_model_input(const torch::Tensor& sample, double t);
  // x_t and the model's output at t -> the sample at the next timestep, in model_output's dtype. [B, ...] -> [B, ...]
  torch::Tensor step(const torch::Tensor& model_output, double t, const torch::Tensor& sample, NoiseSource& noise,
                     const StepOptions& options = StepOptions());
  // x0 [B, ...] with noise [B, ...] added at timesteps [B] or [1] (of this run, for the schedulers with sigmas).
  virtual torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                  const torch::Tensor& timesteps) const;

 protected:
  Scheduler(std::string class_name, Json config, NoiseSchedule noise_schedule);

  // Fills timesteps_ (and sigmas_), and forgets the run before.
  virtual void start_run(std::int64_t num_inference_steps) = 0;
  // Why the class with its config runs over no given timesteps; "" where it does.
  virtual std::string fault_of_given_timesteps() const;
  virtual torch::Tensor scaled_input(const torch::Tensor& sample, double t);
  virtual torch::Tensor advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                NoiseSource& noise, const StepOptions& options) = 0;

  std::int64_t num_inference_steps() const { return num_inference_steps_; }
  // Of this run; empty where the config's spacing holds.
  const std::vector<double>& given_timesteps() const { return given_timesteps_; }
  bool has_begin_index() const { return begin_index_.has_value(); }
  // The place of the run's first t.
  std::int64_t first_index(double t) const;
  // For the schedulers that look timesteps up in the tables: ConfigError where one lies beyond them.
  void require_timesteps_below_limit() const;
  torch::Tensor timesteps_;
  torch::Tensor sigmas_;

 private:
  std::string class_name_;
  Json config_;
  NoiseSchedule noise_schedule_;
  std::int64_t num_inference_steps_ = 0;  // 0 until set_timesteps
  std::vector<double> given_timesteps_;
  std::optional<std::int64_t> begin_index_;
};

// The scheduler of diffusers' class name with a diffusers config (keys not given take that class's defaults; keys of
// another scheduler class pass without effect, as in from_config across classes). Throws WeightError naming `where` for
// an unknown class name, key or value, with the nearest name or what is allowed.
std::unique_ptr<Scheduler> make_scheduler(const std::string& class_name, const Json& config,
                                          const std::string& where = "scheduler_config.json");

// The class names make_scheduler knows.
const std::vector<std::string>& scheduler_class_names();

}  // namespace sdtune::model
