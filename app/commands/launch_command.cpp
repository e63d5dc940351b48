// `sdtune launch`: several ranks of `sdtune train`.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "app/cli/arguments.h"
#include "app/cli/given_options.h"
#include "app/commands/command.h"
#include "app/commands/training_arguments.h"
#include "app/launch/launch.h"
#include "app/launch/restart_words.h"
#include "app/ui/hangup.h"
#include "app/ui/progress_bar.h"
#include "model/machine/control_groups.h"
#include "train/config/run_folder.h"
#include "train/run/train.h"
#include "train/track/tracker_check.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

// The cores that this process may use, which a container or scheduler may have limited, also by a quota of their time.
std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const std::int64_t allowed =
      ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::optional<double> quota = model::quota_of_cores(model::SystemFiles("/"));
  return quota ? std::clamp<std::int64_t>(std::llround(*quota), 1, allowed) : allowed;
}

// The record of the run in the folder, which says when each of its attempts began; empty where there is none.
std::string content_of(const fs::path& record) {
  std::ifstream file(record, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LaunchCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"launch", "Starts several ranks of train on one or more machines, restarts lost ones.",
            "sdtune launch --nproc N [options] -- train --images DIR [options]"};
  }
  FieldList fields() override { return options_.fields(); }
  bool takes_command() const override { return true; }

  int run(Arguments arguments) override {
    GivenOptions given = apply_options(options_.fields(), arguments, "", "the command to start follows --");
    const std::vector<Problem> more = launch_problems(options_);
    given.problems.insert(given.problems.end(), more.begin(), more.end());
    const std::vector<std::string>& words = arguments.command;
    if (words.empty() || words.front() != "train") {
      given.problems.push_back({"--",
                                words.empty() ? "no command follows (allowed: train)"
                                              : "cannot start this command (got " + words.front() + "; allowed: train)",
                                "sdtune launch --nproc 2 -- train --images DIR"});
    } else {
      // Before any rank: a mistake in the options is one line, and costs no start.
      Arguments of_train = parse_arguments({words.begin() + 1, words.end()}, training_.fields());
      if (of_train.help) return run_command_line({"train", "--help"});
      training_.load(of_train);
      const std::vector<Problem>& wrong = training_.loaded.problems;
      given.problems.insert(given.problems.end(), wrong.begin(), wrong.end());
      training_.require_second_reading(given.problems);
    }
    if (!given.problems.empty()) {
      const ConfigError error(given.problems);
      tell_end(error);
      throw error;
    }
    const train::ObserveOptions& observe = training_.loaded.config.observe;
    if (!given.origins.contains("grace") && !train::side_trackers(observe).names.empty()) {
      options_.grace = grace_with_trackers(options_, observe.tracker_timeout);
    }
    const train::RunFolder folder = train::run_folder(training_.loaded.config);
    earlier_ = content_of(folder.record());
    keep_output_after_hangup(folder.log());
    return run_ranks(words);
  }

 private:
  int run_ranks(const std::vector<std::string>& words) {
    try {
      const LaunchEnd end = launch_ranks(
          options_, [&](std::int64_t attempt) { return words_of(words, attempt); }, usable_cores());
      if (end.is_untold) tell_end(Error(static_cast<ExitCode>(end.code), "launch", end.cause));
      return end.code;
    } catch (const Error& error) {  // no rank could be started
      tell_end(error);
      throw;
    }
  }

  // notify and on_finish of a run that ends where no rank 0, which is on machine 0, has told it.
  void tell_end(const Error& error) const {
    if (options_.node_rank != 0) return;
    ProgressBar progress(stderr);
    train::finish_run(training_.loaded.config, error, {&progress});
  }

  std::vector<std::string> words_of(const std::vector<std::string>& words, std::int64_t attempt) const {
    if (attempt == 0) return words;
    const train::TrainConfig& config = training_.loaded.config;
    const train::RunFolder folder = train::run_folder(config);
    // By content: a file's time is that of the disk's own clock, which may be another machine's.
    const std::string now = content_of(folder.record());
    return restart_words(words, {config.checkpoint.resume_from_checkpoint, config.run.overwrite,
                                 !now.empty() && now != earlier_, has_whole_checkpoint(folder.checkpoints())});
  }

  LaunchOptions options_;
  TrainingArguments training_;
  std::string earlier_;  // record of the run that was in the folder before
};

}  // namespace

std::unique_ptr<Command> make_launch_command() {
  return std::make_unique<LaunchCommand>();
}

}  // namespace sdtune::app
