// metrics.jsonl: a line of JSON for each optimizer step, the source of every other plot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "model/base/file_system.h"
#include "train/observe/append_file.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// Told once when a log cannot be written; the run goes on.
using Warn = std::function<void(const Problem&)>;

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
  void drop_lines_after(std::int64_t step);
  void warn_once(const std::string& cause);

  FileSystem& files_;
  Warn warn_;
  bool warned_ = false;
  std::filesystem::path path_;
  std::int64_t attempt_ = 1;
  AppendFile file_;
};

}  // namespace sdtune::train
