// The ledger of a run's attempts in run.json: when each began and ended, why, and what of it was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/config/run_folder.h"
#include "train/observe/observer.h"
#include "train/observe/step_lines.h"

namespace sdtune::train {

// The attempts in run.json, in order; none where there is no such file or it cannot be read: it is a record for people,
// and the checkpoint holds what counts. Keys: attempt, device, first_step, started and ended (s since 1970), last_step,
// cause, exit_code (null where it is not known), redone_steps.
Json read_attempts(const RunFolder& folder);

// The same before a new attempt begins after `first_step`. An attempt that could not say how it ended (SIGKILL, a
// machine that is gone) gets what the lines of metrics.jsonl know: when its last step ended, and which one.
// redone_steps becomes what the new attempt does again of the one before. Behind them, those that ended before their
// first step (unstarted.json) and are not among them yet.
Json attempts_before(const RunFolder& folder, std::int64_t first_step);

// What to warn of where the last of these attempts that says its device ran on another one than `device`
// (model::describe_device, without the number of a GPU): another processor, card or driver, or another number of
// threads, sums in another order. Nothing where the ledger does not say.
std::optional<Problem> device_change(const Json& attempts, const std::string& device);

// s that these attempts took, from their starts to their ends.
double seconds_of(const Json& attempts);

// Writes the end of this attempt, the last one of the ledger; one that ends before its first step, while class images
// are generated for example, goes into unstarted.json unless it was refused, since time and money are spent by then. A
// failure is a warning.
class AttemptLedger : public Observer {
 public:
  // `started`: s since 1970.
  AttemptLedger(FileSystem& files, RunFolder folder, std::int64_t started, Warn warn)
      : files_(files), warn_(std::move(warn)), folder_(std::move(folder)), started_(started) {}

  void on_start(const RunSummary& summary) override;
  void on_step(const StepEvent& event) override;
  void on_checkpoint(const CheckpointEvent& event) override;
  void on_end(const EndEvent& event) override;

 private:
  void write_end(const EndEvent& event);
  void add_unstarted(const EndEvent& event);

  FileSystem& files_;
  Warn warn_;
  RunFolder folder_;
  std::int64_t started_;
  bool began_ = false;
  std::int64_t last_step_ = 0;   // that was computed
  std::int64_t saved_step_ = 0;  // that a checkpoint holds
};

}  // namespace sdtune::train
