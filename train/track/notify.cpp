#include "train/track/notify.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "model/base/clock.h"
#include "model/base/error.h"
#include "train/track/tracker_check.h"

namespace sdtune::train {

namespace {

bool is_web_address(const std::string& url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  const bool is_printable = std::all_of(url.begin(), url.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  return scheme != 0 && url.size() > scheme && url[scheme] != '/' && is_printable;
}

Json or_null(const auto& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::vector<Problem> notify_problems(const std::string& url) {
  std::vector<Problem> problems;
  if (url.empty()) return problems;
  if (!is_web_address(url)) {
    return {{"notify", "is no address of a webhook (allowed: http://... or https://..., without spaces)", ""}};
  }
  script_words("notify.py", "notify", problems);
  return problems;
}

RunNotifier::RunNotifier(std::string url, std::filesystem::path folder, Warn warn)
    : url_(std::move(url)), folder_(std::move(folder)), warn_(std::move(warn)), started_(seconds_since_1970()) {}

void RunNotifier::on_start(const RunSummary& summary) {
  if (url_.empty()) return;
  total_steps_ = summary.total_steps;
  attempt_ = summary.attempt;
  step_ = summary.first_step;
  start_post_ = post(payload("start"));
}

void RunNotifier::on_step(const StepEvent& event) {
  step_ = event.step;
  loss_ = event.loss;
}

void RunNotifier::finish(int exit_code, const std::string& cause, bool is_failure) {
  if (url_.empty()) return;
  if (start_post_) settle(std::move(start_post_), kSeconds / 2, "start");
  const char* event = is_failure ? "failure" : "end";
  Json message = payload(event);
  message["exit_code"] = exit_code;
  message["cause"] = cause;
  if (std::unique_ptr<ScriptProcess> process = post(message)) settle(std::move(process), kSeconds / 2, event);
}

Json RunNotifier::payload(const char* event) const {
  const double now = seconds_since_1970();
  const std::string run = folder_.empty() ? "" : std::filesystem::absolute(folder_).lexically_normal().string();
  return {{"event", event},
          {"run", run},
          {"attempt", or_null(attempt_)},
          {"step", or_null(step_)},
          {"total_steps", or_null(total_steps_)},
          {"loss", or_null(loss_)},
          {"exit_code", nullptr},
          {"cause", nullptr},
          {"started", started_},
          {"time", now},
          {"seconds", now - started_}};
}

std::unique_ptr<ScriptProcess> RunNotifier::post(const Json& payload) {
  std::vector<Problem> problems;
  const std::vector<std::string> words = script_words("notify.py", "notify", problems);
  const std::string event = payload["event"].get<std::string>();
  if (!problems.empty()) {
    say(event, problems.front().what);
    return nullptr;
  }
  try {
    auto process = std::make_unique<ScriptProcess>(words, std::filesystem::path());
    process->send({{"url", url_}, {"payload", payload}});
    return process;
  } catch (const StorageError& error) {
    say(event, error.problems().front().what);
    return nullptr;
  }
}

void RunNotifier::settle(std::unique_ptr<ScriptProcess> process, double seconds, const std::string& event) {
  const bool is_over = process->wait(seconds);
  const std::vector<Json> replies = process->replies();
  if (!is_over) return say(event, "the server does not answer in time");
  if (replies.size() != 1 || !replies.front().contains("fault")) return say(event, "the script that posts it failed");
  const std::string fault = replies.front()["fault"].get<std::string>();
  if (!fault.empty()) say(event, fault);
}

void RunNotifier::say(const std::string& event, const std::string& what) const {
  if (warn_) warn_({"notify", "the " + event + " was not told: " + what, "the run itself is as it should be"});
}

}  // namespace sdtune::train
