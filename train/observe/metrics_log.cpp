#include "train/observe/metrics_log.h"

#include <utility>

#include "model/base/json.h"
#include "train/observe/step_values.h"

namespace sdtune::train {

MetricsLog::MetricsLog(FileSystem& files, Warn warn) : lines_(files, std::move(warn)) {}

void MetricsLog::on_start(const RunSummary& summary) {
  attempt_ = summary.attempt;
  lines_.open(summary.output / "metrics.jsonl", summary.first_step);
}

void MetricsLog::on_step(const StepEvent& event) {
  Json line = {{"attempt", attempt_}, {"step", event.step}, {"epoch", event.epoch}};
  for (const auto& [name, value] : step_values(event)) line[name] = value;
  if (!event.loss_prior) line["loss_prior"] = nullptr;
  line["max_memory_bytes"] = event.max_memory_bytes;
  line["skipped"] = event.skipped;
  line["time"] = event.time;
  line["elapsed"] = event.elapsed;
  lines_.append(line);
}

}  // namespace sdtune::train
