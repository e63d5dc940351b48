#include "train/run/attempt_ledger.h"

#include <algorithm>
#include <sstream>

#include "model/base/clock.h"
#include "model/files/json_file.h"

namespace sdtune::train {

namespace {

constexpr const char* kUnknownEnd = "not known: it was killed, or the machine was lost";

std::int64_t whole_seconds_since_1970() {
  return static_cast<std::int64_t>(seconds_since_1970());
}

// The last line of metrics.jsonl that attempt `number` wrote; null for none.
Json last_line(const RunFolder& folder, std::int64_t number) {
  Json last;
  if (!is_file(folder.metrics())) return last;
  std::istringstream lines(read_file(folder.metrics()));
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    const bool is_step = json.is_object() && json.value("step", Json()).is_number_integer();
    if (is_step && json.value("attempt", Json()) == number) last = std::move(json);
  }
  return last;
}

// An attempt that wrote no end.
void fill_in(Json& attempt, const RunFolder& folder) {
  const Json line = last_line(folder, attempt.value("attempt", std::int64_t{0}));
  const bool has_time = line.is_object() && line.value("time", Json()).is_number();
  attempt["ended"] = has_time ? Json(line["time"].get<std::int64_t>()) : attempt.value("started", Json());
  attempt["last_step"] = line.is_object() ? line["step"] : attempt.value("first_step", Json(0));
  attempt["cause"] = kUnknownEnd;
  attempt["exit_code"] = nullptr;
}

// "cpu (..)", and of "cuda:1 (NVIDIA L4, ..)" what is in brackets: cards of one kind compute the same.
std::string without_number(const std::string& device) {
  return device.starts_with("cuda") ? device.substr(std::min(device.find('('), device.size())) : device;
}

}  // namespace

Json read_attempts(const RunFolder& folder) {
  if (!is_file(folder.record())) return Json::array();
  try {
    const Json record = read_json(folder.record());
    if (!record.contains("attempts") || !record["attempts"].is_array()) return Json::array();
    Json attempts = Json::array();
    for (const Json& attempt : record["attempts"]) {
      if (attempt.is_object()) attempts.push_back(attempt);
    }
    return attempts;
  } catch (const Error&) {
    return Json::array();
  }
}

Json attempts_before(const RunFolder& folder, std::int64_t first_step) {
  Json attempts = read_attempts(folder);
  for (Json& attempt : attempts) {
    if (!attempt.contains("ended")) fill_in(attempt, folder);
  }
  if (attempts.empty()) return attempts;
  Json& last = attempts.back();
  if (last["last_step"].is_number_integer()) {
    last["redone_steps"] = std::max<std::int64_t>(0, last["last_step"].get<std::int64_t>() - first_step);
  }
  return attempts;
}

std::optional<Problem> device_change(const Json& attempts, const std::string& device) {
  if (attempts.empty() || !attempts.back().value("device", Json()).is_string()) return std::nullopt;
  const auto before = attempts.back()["device"].get<std::string>();
  if (without_number(before) == without_number(device)) return std::nullopt;
  return Problem{
      "device", "is now " + device + ", and was " + before + " before",
      "sums are taken in another order there, so the weights will differ by rounding from those of a run that "
      "stays on one (OMP_NUM_THREADS sets the threads)"};
}

double seconds_of(const Json& attempts) {
  double seconds = 0;
  for (const Json& attempt : attempts) {
    const Json started = attempt.value("started", Json());
    const Json ended = attempt.value("ended", Json());
    if (!started.is_number() || !ended.is_number()) continue;
    seconds += std::max(0.0, ended.get<double>() - started.get<double>());
  }
  return seconds;
}

void AttemptLedger::on_start(const RunSummary& summary) {
  folder_ = {summary.output};
  last_step_ = saved_step_ = summary.first_step;
  began_ = true;
}

void AttemptLedger::on_step(const StepEvent& event) {
  last_step_ = event.step;
}

void AttemptLedger::on_checkpoint(const CheckpointEvent& event) {
  saved_step_ = event.step;
}

void AttemptLedger::on_end(const EndEvent& event) {
  if (!began_) return;
  try {
    Json record = read_json(folder_.record());
    Json& attempt = record.at("attempts").back();
    attempt["ended"] = whole_seconds_since_1970();
    attempt["last_step"] = last_step_;
    attempt["cause"] = event.cause;
    attempt["exit_code"] = static_cast<int>(event.code);
    attempt["redone_steps"] = event.end == RunEnd::kDone ? 0 : last_step_ - saved_step_;
    write_file_atomically(files_, folder_.record(), record.dump(2) + "\n");
  } catch (const Error& error) {
    if (warn_) warn_({folder_.record().string(), error.problems().front().what, "it does not say how the run ended"});
  } catch (const Json::exception&) {
    if (warn_) warn_({folder_.record().string(), "has no attempts any more", "it does not say how the run ended"});
  }
}

}  // namespace sdtune::train
