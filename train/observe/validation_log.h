// validation.jsonl: the loss on the held-out photos, a line a validation.
#pragma once

#include <cstdint>

#include "train/observe/step_lines.h"

namespace sdtune::train {

class ValidationLog : public Observer {
 public:
  // Writes <summary.output>/validation.jsonl, and nothing in a run without held-out photos. `warn` may be empty.
  ValidationLog(FileSystem& files, Warn warn);

  void on_start(const RunSummary& summary) override;
  // Keys: attempt, step, loss, time (s since 1970, UTC).
  void on_validation(const ValidationEvent& event) override;

 private:
  std::int64_t attempt_ = 1;
  std::int64_t first_step_ = 0;
  std::filesystem::path path_;  // empty once it is open
  StepLines lines_;
};

}  // namespace sdtune::train
