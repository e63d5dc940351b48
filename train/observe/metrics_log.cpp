#include "train/observe/metrics_log.h"

#include <utility>

#include "model/base/json.h"

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
  if (event.slowest_rank) line["slowest_rank"] = *event.slowest_rank;
  line["max_memory_bytes"] = event.max_memory_bytes;
  line["skipped"] = event.skipped;
  line["time"] = event.time;
  line["elapsed"] = event.elapsed;
  lines_.append(line);
}

std::vector<std::pair<std::string, double>> step_values(const StepEvent& event) {
  std::vector<std::pair<std::string, double>> values = {{"loss", event.loss}, {"loss_instance", event.loss_instance}};
  if (event.loss_prior) values.emplace_back("loss_prior", *event.loss_prior);
  values.emplace_back("lr", event.lr);
  if (event.text_encoder_lr) values.emplace_back("text_encoder_lr", *event.text_encoder_lr);
  values.emplace_back("grad_norm", event.grad_norm);
  if (event.loss_scale) values.emplace_back("loss_scale", *event.loss_scale);
  values.emplace_back("images_per_s", event.images_per_s);
  if (event.communication_share) values.emplace_back("communication_share", *event.communication_share);
  if (event.straggler_ratio) values.emplace_back("straggler_ratio", *event.straggler_ratio);
  if (event.slowest_rank) values.emplace_back("slowest_rank", static_cast<double>(*event.slowest_rank));
  if (event.overlapped_share) values.emplace_back("overlapped_share", *event.overlapped_share);
  values.emplace_back("max_memory_bytes", static_cast<double>(event.max_memory_bytes));
  return values;
}

}  // namespace sdtune::train
