#include "train/track/tracker_check.h"

#include <algorithm>
#include <memory>

#include "model/files/install_paths.h"
#include "train/track/python_interpreter.h"
#include "train/track/script_process.h"

namespace sdtune::train {

namespace {

constexpr double kCheckSeconds = 60;  // an interpreter's start on a slow disk

bool names(const ObserveOptions& options, const std::string& name) {
  return std::find(options.report_to.begin(), options.report_to.end(), name) != options.report_to.end();
}

// How pip calls what is imported by that name.
std::string pip_name(const std::string& tracker) {
  return tracker == "mlflow" ? "mlflow-skinny" : tracker;
}

std::vector<Problem> missing_packages(const std::vector<std::string>& words, const std::vector<std::string>& trackers) {
  std::vector<std::string> asked = words;
  asked.emplace_back("check");
  asked.insert(asked.end(), trackers.begin(), trackers.end());
  const std::string& python = words.front();
  std::vector<Json> replies;
  try {
    ScriptProcess process(asked, {});
    process.wait(kCheckSeconds);
    replies = process.replies();
  } catch (const StorageError& error) {
    return {{"report_to", python + " " + error.problems().front().what, "SDTUNE_PYTHON names another Python"}};
  }
  if (replies.size() != 1 || !replies.front().contains("missing")) {
    return {{"report_to", python + " does not run the script that asks for packages",
             "SDTUNE_PYTHON names another Python, 3.9 or newer"}};
  }
  std::vector<Problem> problems;
  for (const Json& name : replies.front()["missing"]) {
    const std::string tracker = name.get<std::string>();
    problems.push_back({"report_to", tracker + " is not installed in " + python,
                        python + " -m pip install " + pip_name(tracker) + ", or SDTUNE_PYTHON names another Python"});
  }
  return problems;
}

}  // namespace

SideTrackers side_trackers(const ObserveOptions& options) {
  SideTrackers found{{}, names(options, "all")};
  for (const char* tracker : {"wandb", "mlflow", "trackio"}) {
    if (found.optional || names(options, tracker)) found.names.emplace_back(tracker);
  }
  return found;
}

bool reports_to_tensorboard(const ObserveOptions& options) {
  return names(options, "tensorboard") || names(options, "all");
}

std::vector<std::string> script_words(const std::string& script, const std::string& option,
                                      std::vector<Problem>& problems) {
  const std::filesystem::path python = find_python();
  const std::filesystem::path file = find_shared_file("scripts/trackers/" + script);
  if (python.empty()) problems.push_back({option, "needs a python3, and there is none", "SDTUNE_PYTHON names one"});
  if (file.empty()) {
    problems.push_back({option, "this installation lacks scripts/trackers/" + script,
                        "install it again, or set SDTUNE_SHARE to the folder that holds it"});
  }
  return {python.string(), file.string()};
}

std::vector<Problem> tracker_problems(const ObserveOptions& options) {
  std::vector<Problem> problems;
  const SideTrackers trackers = side_trackers(options);
  if (trackers.names.empty() || trackers.optional) return problems;
  const std::vector<std::string> words = script_words("tracker_process.py", "report_to", problems);
  return problems.empty() ? missing_packages(words, trackers.names) : problems;
}

}  // namespace sdtune::train
