#include "train/observe/validation_log.h"

#include <chrono>
#include <utility>

namespace sdtune::train {

ValidationLog::ValidationLog(FileSystem& files, Warn warn) : lines_(files, std::move(warn)) {}

void ValidationLog::on_start(const RunSummary& summary) {
  attempt_ = summary.attempt;
  first_step_ = summary.first_step;
  path_ = summary.output / "validation.jsonl";
}

void ValidationLog::on_validation(const ValidationEvent& event) {
  if (!event.loss) return;
  if (!path_.empty()) lines_.open(std::exchange(path_, {}), first_step_);
  const std::chrono::duration<double> time = std::chrono::system_clock::now().time_since_epoch();
  lines_.append({{"attempt", attempt_}, {"step", event.step}, {"loss", *event.loss}, {"time", time.count()}});
}

}  // namespace sdtune::train
