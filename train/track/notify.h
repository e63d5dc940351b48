// --notify: a webhook that is told of the run's start, end or failure, by scripts/trackers/notify.py. What fails here
// is a warning. A run that the kernel kills (SIGKILL, a lost machine) sends nothing; its next attempt's start does.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/observe/observer.h"
#include "train/observe/step_lines.h"
#include "train/track/script_process.h"

namespace sdtune::train {

// What is wrong with the address, or missing to post to it. Never repeats the address, which is a secret.
std::vector<Problem> notify_problems(const std::string& url);

class RunNotifier : public Observer {
 public:
  static constexpr double kSeconds = 20;  // that the end of the run waits at most

  // An empty `url` makes it silent. `folder` is the run's, which need not exist.
  RunNotifier(std::string url, std::filesystem::path folder, Warn warn);

  void on_start(const RunSummary& summary) override;  // waits for nothing
  void on_step(const StepEvent& event) override;
  // The end of the run with its exit code: `is_failure` where an error ended it.
  void finish(int exit_code, const std::string& cause, bool is_failure);

 private:
  std::unique_ptr<ScriptProcess> post(const Json& payload);
  Json payload(const char* event) const;
  void settle(std::unique_ptr<ScriptProcess> process, double seconds, const std::string& event);
  void say(const std::string& event, const std::string& what) const;

  std::string url_;
  std::filesystem::path folder_;
  Warn warn_;
  double started_;
  std::optional<std::int64_t> total_steps_, attempt_, step_;  // known from the start on
  std::optional<double> loss_;
  std::unique_ptr<ScriptProcess> start_post_;
};

}  // namespace sdtune::train
