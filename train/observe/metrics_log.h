// metrics.jsonl: a line of JSON for each optimizer step, the source of every other plot.
#pragma once

#include <cstdint>

#include "train/observe/step_lines.h"

namespace sdtune::train {

class MetricsLog : public Observer {
 public:
  // Writes <summary.output>/metrics.jsonl. `warn` may be empty.
  MetricsLog(FileSystem& files, Warn warn);

  // Drops the lines of steps that will be done again (all of them in a fresh run), and a line that a kill cut short.
  void on_start(const RunSummary& summary) override;
  // Keys: attempt, step, epoch, loss, loss_instance, loss_prior, lr, text_encoder_lr, grad_norm, loss_scale,
  // images_per_s, max_memory_bytes, skipped, time, elapsed. A number that is not finite is null, as is loss_prior
  // without prior preservation.
  void on_step(const StepEvent& event) override;

 private:
  std::int64_t attempt_ = 1;
  StepLines lines_;
};

// What metrics.jsonl and TensorBoard plot over the steps, in order: loss, loss_instance, loss_prior, lr, ... Values
// that the step does not have are left out.
std::vector<std::pair<std::string, double>> step_values(const StepEvent& event);

}  // namespace sdtune::train
