// The run for TensorBoard: scalars of each step and the validation images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/observe/append_file.h"
#include "train/observe/metrics_log.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// Writes <summary.output>/events.out.tfevents.<time>.<host>.<pid>, a new file each attempt. A resumed attempt begins
// with a session start at its first step, so each step is shown once although an earlier attempt may have gone further.
class EventFile : public Observer {
 public:
  // `warn` may be empty; it is called once when the file cannot be written.
  explicit EventFile(Warn warn);

  void on_start(const RunSummary& summary) override;
  void on_step(const StepEvent& event) override;  // tags: the keys of metrics.jsonl
  void on_validation(const ValidationEvent& event) override;
  void on_identity(const IdentityEvent& event) override;  // tags: validation/0, ..., validation_loss

 private:
  void write(std::string_view messages_in_frames);

  Warn warn_;
  bool warned_ = false;
  std::filesystem::path path_;
  AppendFile file_;
};

}  // namespace sdtune::train
