#include "train/observe/metrics_log.h"

#include <string>
#include <string_view>
#include <utility>

#include "model/base/json.h"
#include "train/observe/step_values.h"

namespace sdtune::train {

namespace {

// The step of a line, or nothing when the line is not one of ours.
std::optional<std::int64_t> step_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  return json["step"].get<std::int64_t>();
}

}  // namespace

MetricsLog::MetricsLog(FileSystem& files, Warn warn) : files_(files), warn_(std::move(warn)) {}

void MetricsLog::on_start(const RunSummary& summary) {
  path_ = summary.output / "metrics.jsonl";
  attempt_ = summary.attempt;
  try {
    drop_lines_after(summary.first_step);
  } catch (const Error& error) {
    warn_once(error.problems().front().what);
  }
  const std::string failure = file_.open(path_);
  if (!failure.empty()) warn_once(failure);
}

void MetricsLog::drop_lines_after(std::int64_t step) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return;
  const std::string content = read_file(path_);
  std::string kept;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string::npos) break;  // cut short
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    const std::optional<std::int64_t> at = step_of(line);
    if (at && *at <= step) kept.append(line).append("\n");
    begin = end + 1;
  }
  if (kept != content) write_file_atomically(files_, path_, kept);
}

void MetricsLog::on_step(const StepEvent& event) {
  Json line = {{"attempt", attempt_}, {"step", event.step}, {"epoch", event.epoch}};
  for (const auto& [name, value] : step_values(event)) line[name] = value;
  if (!event.loss_prior) line["loss_prior"] = nullptr;
  line["max_memory_bytes"] = event.max_memory_bytes;
  line["skipped"] = event.skipped;
  line["time"] = event.time;
  line["elapsed"] = event.elapsed;
  const std::string failure = file_.append(line.dump() + "\n");
  if (!failure.empty()) warn_once(failure);
}

void MetricsLog::warn_once(const std::string& cause) {
  if (!std::exchange(warned_, true) && warn_) {
    warn_({path_.string(), "cannot be written: " + cause, "training goes on without these lines"});
  }
}

}  // namespace sdtune::train
