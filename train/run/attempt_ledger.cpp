#include "train/run/attempt_ledger.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "model/base/clock.h"
#include "model/files/json_file.h"

namespace sdtune::train {

namespace {

constexpr const char* kUnknownEnd = "not known: it was killed, or the machine was lost";

std::int64_t whole_seconds_since_1970() {
  return static_cast<std::int64_t>(seconds_since_1970());
}

// The last line of metrics.jsonl that attempt `number` wrote; null for none, and where the file cannot be read: no run
// is refused for want of it.
Json last_line(const RunFolder& folder, std::int64_t number) {
  Json last;
  if (!is_file(folder.metrics())) return last;
  try {
    for_each_line(folder.metrics(), [&](std::string_view line) {
      Json json = Json::parse(line, nullptr, false);
      const bool is_step = json.is_object() && json.value("step", Json()).is_number_integer();
      if (is_step && json.value("attempt", Json()) == number) last = std::move(json);
    });
  } catch (const DataError&) {
    return nullptr;
  }
  return last;
}

// An attempt that wrote no end.
void fill_in(Json& attempt, const RunFolder& folder) {
  const Json number = attempt.value("attempt", Json());
  const Json line = last_line(folder, number.is_number_integer() ? number.get<std::int64_t>() : 0);
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

// Causes, the words of an error, may name files, whose names need not be UTF-8.
void write_attempts(FileSystem& files, const std::filesystem::path& file, const Json& record) {
  write_file_atomically(files, file, record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// None where there is no such file or it is none of ours.
Json attempts_in(const std::filesystem::path& file) {
  if (!is_file(file)) return Json::array();
  try {
    const Json record = read_json(file);
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

// A kill between the writing of run.json and the removal of the other file leaves them in both.
bool is_among(const Json& attempts, const Json& wanted) {
  return std::any_of(attempts.begin(), attempts.end(), [&](const Json& attempt) {
    return attempt.value("started", Json()) == wanted.value("started", Json());
  });
}

// Where they began they also ended.
void add_unstarted_attempts(Json& attempts, const RunFolder& folder, std::int64_t first_step) {
  for (Json attempt : attempts_in(folder.unstarted())) {
    if (is_among(attempts, attempt)) continue;
    attempt["attempt"] = static_cast<std::int64_t>(attempts.size()) + 1;
    attempt["first_step"] = first_step;
    attempt["last_step"] = first_step;
    attempt["redone_steps"] = 0;
    attempts.push_back(std::move(attempt));
  }
}

}  // namespace

Json read_attempts(const RunFolder& folder) {
  return attempts_in(folder.record());
}

Json attempts_before(const RunFolder& folder, std::int64_t first_step) {
  Json attempts = read_attempts(folder);
  for (Json& attempt : attempts) {
    if (!attempt.contains("ended")) fill_in(attempt, folder);
  }
  if (!attempts.empty()) {
    Json& last = attempts.back();
    if (last["last_step"].is_number_integer()) {
      last["redone_steps"] = std::max<std::int64_t>(0, last["last_step"].get<std::int64_t>() - first_step);
    }
  }
  add_unstarted_attempts(attempts, folder, first_step);
  return attempts;
}

std::optional<Problem> device_change(const Json& attempts, const std::string& device) {
  std::string before;
  for (const Json& attempt : attempts) {
    const Json said = attempt.value("device", Json());
    if (said.is_string()) before = said.get<std::string>();
  }
  if (before.empty()) return std::nullopt;
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

void AttemptLedger::write_end(const EndEvent& event) {
  Json record = read_json(folder_.record());
  Json& attempt = record.at("attempts").back();
  attempt["ended"] = whole_seconds_since_1970();
  attempt["last_step"] = last_step_;
  attempt["cause"] = event.cause;
  attempt["exit_code"] = static_cast<int>(event.code);
  attempt["redone_steps"] = event.end == RunEnd::kDone ? 0 : last_step_ - saved_step_;
  write_attempts(files_, folder_.record(), record);
}

// One that was refused leaves the folder as it was, and one that ended at once has spent nothing.
void AttemptLedger::add_unstarted(const EndEvent& event) {
  const std::int64_t ended = whole_seconds_since_1970();
  if (ended <= started_ || event.code == ExitCode::kBadInput || event.code == ExitCode::kNoCheckpoint) return;
  Json record = {{"attempts", attempts_in(folder_.unstarted())}};
  record["attempts"].push_back(
      {{"started", started_}, {"ended", ended}, {"cause", event.cause}, {"exit_code", static_cast<int>(event.code)}});
  write_attempts(files_, folder_.unstarted(), record);
}

void AttemptLedger::on_end(const EndEvent& event) {
  const std::filesystem::path file = began_ ? folder_.record() : folder_.unstarted();
  try {
    if (began_) {
      write_end(event);
    } else {
      add_unstarted(event);
    }
  } catch (const Error& error) {
    if (warn_) warn_({file.string(), error.problems().front().what, "it does not say how the run ended"});
  } catch (const Json::exception&) {
    if (warn_) warn_({file.string(), "has no attempts any more", "it does not say how the run ended"});
  }
}

}  // namespace sdtune::train
