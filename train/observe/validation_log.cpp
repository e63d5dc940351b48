#include "train/observe/validation_log.h"

#include <utility>

#include "train/observe/event_record.h"

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
  lines_.append({{"attempt", attempt_}, {"step", event.step}, {"loss", *event.loss}, {"time", unix_time()}});
}

}  // namespace sdtune::train
