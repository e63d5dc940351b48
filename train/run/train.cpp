#include "train/run/train.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/core/device.h"
#include "model/core/tensor_memory.h"
#include "model/core/tf32_scope.h"
#include "model/files/atomic_folder.h"
#include "train/config/rank_configuration.h"
#include "train/dist/rank_failure.h"
#include "train/dist/rank_store.h"
#include "train/dist/stop_request.h"
#include "train/observe/page_images.h"
#include "train/preflight/machine_warnings.h"
#include "train/preflight/option_warnings.h"
#include "train/preflight/preflight.h"
#include "train/preflight/run_lock.h"
#include "train/rental/finish_command.h"
#include "train/run/agree_on_format.h"
#include "train/run/attempt_ledger.h"
#include "train/run/build_run.h"
#include "train/run/compare_replicas.h"
#include "train/run/described_failure.h"
#include "train/run/preemption_guard.h"
#include "train/run/reached_step.h"
#include "train/run/report_images.h"
#include "train/run/run_budget.h"
#include "train/run/run_observers.h"
#include "train/run/run_record.h"
#include "train/run/save_time.h"
#include "train/run/share_checkpoint.h"
#include "train/run/trainer.h"
#include "train/track/notify.h"

namespace sdtune::train {

namespace {

constexpr double kReportShare = 0.05;  // of the run's time, for images of the report

// --overwrite: what an earlier run left, except class images, which cost time and are checked before they are used.
void clear_folder(FileSystem& files, const RunFolder& folder) {
  std::vector<std::filesystem::path> parts = {folder.checkpoints(), folder.best(),  folder.samples(),
                                              folder.profile(),     folder.model(), comparison_folder(folder.root)};
  for (const std::filesystem::path& written : {folder.model(), folder.best()}) {
    const std::vector<std::filesystem::path> left = left_by_killed_writings(written);
    parts.insert(parts.end(), left.begin(), left.end());
  }
  for (const std::filesystem::path& part : parts) {
    if (std::filesystem::exists(part)) files.remove_tree(part);
  }
  for (const std::filesystem::path& file :
       {folder.config(), folder.record(), folder.unstarted(), folder.metrics(), folder.validation(), folder.identity(),
        folder.report(), folder.last_error(), folder.root / "trackers.json", folder.root / "trackers.log"}) {
    if (std::filesystem::exists(file)) files.unlink(file);
  }
  std::error_code none;
  std::filesystem::resize_file(folder.log(), 0, none);  // a terminal that is gone may already have left it open
  for (const auto& entry : std::filesystem::directory_iterator(folder.root)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.unlink(entry.path());
  }
}

// What the parts of train() share.
struct Training {
  const TrainConfig& config;
  RunFolder folder;
  bool is_first;
  RunBudget& budget;
  PreemptionGuard& guard;
  const std::vector<Observer*>& observers;
  const PortraitReaderSource& portrait_readers;
  StopFlag& stop;
  std::int64_t started;  // s since 1970
  const ReachedStep& reached;
  bool& has_begun;  // the ranks are ready for the first step
};

// Those who are told of warnings: the callers, and while there are any the run's own observers. It must not move.
struct Warned {
  std::vector<Observer*> observers;
  Warn warn() const {
    return [this](const Problem& problem) { tell(observers, &Observer::on_warning, problem); };
  }
};

class WarnedScope {
 public:
  WarnedScope(Warned& warned, std::vector<Observer*> observers)
      : warned_(warned), before_(std::exchange(warned.observers, std::move(observers))) {}
  ~WarnedScope() { warned_.observers = before_; }
  WarnedScope(const WarnedScope&) = delete;
  WarnedScope& operator=(const WarnedScope&) = delete;

 private:
  Warned& warned_;
  std::vector<Observer*> before_;
};

// A run that may go on with an earlier one keeps its ledger.
bool continues(const TrainConfig& config) {
  return !config.checkpoint.resume_from_checkpoint.empty();
}

void record_attempt(const Training& training, Run& run) {
  const Json earlier = continues(run.config) ? attempts_before(training.folder, run.first_step) : Json::array();
  run.attempt = std::max(run.attempt, static_cast<std::int64_t>(earlier.size()) + 1);
  if (run.first_step > 0) {
    const std::optional<Problem> change = device_change(earlier, model::describe_device(run.device));
    if (change) tell(training.observers, &Observer::on_warning, *change);
  }
  write_run_record(real_file_system(), run, {earlier, training.started});
  // The ones that did not start are in the record now, and the error was that of an earlier attempt.
  for (const std::filesystem::path& file : {training.folder.unstarted(), training.folder.last_error()}) {
    if (is_file(file)) real_file_system().unlink(file);
  }
}

EndEvent end_of(const TrainResult& result, double seconds) {
  const RunEnd end = result.code == ExitCode::kDone ? RunEnd::kDone : RunEnd::kStopped;
  return {end,         result.step,  result.model_step, result.model_path, seconds,
          result.code, result.cause, result.is_partial, result.checkpoint};
}

// With the words of the notice, where this machine got one.
std::string stop_cause(const Training& training, const std::string& signal) {
  const std::string notice = training.guard.notice();
  return notice.empty() ? signal : "preemption (" + notice + ")";
}

// Base and model for the report. The run is done, and nothing here may take that away.
void show_result(const Training& training, const ReportImagesPlan& plan) {
  const auto tell_of = [&](const std::string& why) {
    tell(training.observers, &Observer::on_warning,
         Problem{"report_images", "were not generated: " + why, "the model itself is as it should be"});
  };
  try {
    write_report_images(real_file_system(), plan, training.stop);
  } catch (const Error& error) {
    tell_of(error.problems().front().line());
  } catch (const std::exception& error) {
    const std::string text = error.what();
    tell_of(text.substr(0, text.find('\n')));
  }
}

// What the ranks have said and compared: they start from the same.
struct Start {
  torch::Device device;
  Preflight preflight;
  std::unique_ptr<ReceivedCheckpoint> received;
};

TrainResult run_to_end(const Training& training, std::shared_ptr<ProcessGroup>& group, Start start_from) {
  const auto start = std::chrono::steady_clock::now();
  const TrainConfig& config = training.config;
  const std::vector<Observer*>& observers = training.observers;
  const model::Tf32Scope tf32(config.precision.allow_tf32);
  const model::CpuImplementationScope implementation(
      start_from.preflight.resume.state.implementation.value_or(model::cpu_implementation()));
  const ResumePoint& resume = start_from.preflight.resume;
  for (const Problem& warning : machine_warnings(config, recorded_value(resume, "mixed_precision"))) {
    tell(observers, &Observer::on_warning, warning);
  }
  for (const Problem& warning : resume.warnings) tell(observers, &Observer::on_warning, warning);
  if (training.is_first) {
    for (const Problem& warning : option_warnings(config)) tell(observers, &Observer::on_warning, warning);
  }
  const torch::Device device = start_from.device;
  std::unique_ptr<Run> run = build_run(config, group, device, start_from.preflight, observers, training.stop);
  start_from.preflight = {};  // the photos that it kept
  if (training.is_first) {
    record_attempt(training, *run);
    run->stops->limit([&training] { return training.budget.is_spent(); });
  }
  tell(observers, &Observer::on_start, summarize(*run));
  if (training.is_first && training.guard.watches()) {
    training.guard.expect_save(estimate_save_seconds(real_file_system(), *run), "estimated from this disk");
  }
  run->group->barrier();  // ranks load and encode at different speeds
  training.has_begun = true;
  if (std::exchange(start_from.received, nullptr)) run->last_checkpoint.clear();  // it is gone
  TrainResult result = Trainer(*run, observers, training.portrait_readers, training.stop).train();
  if (result.is_partial && training.is_first) result.cause = training.budget.cause();
  if (result.code != ExitCode::kDone) result.cause = stop_cause(training, result.cause);
  const TrainConfig resolved = run->config;
  const std::string prompt = report_prompt(resolved.data, run->data.photos.photos);
  const torch::Dtype dtype = run->dtype;
  run.reset();  // its memory: what follows loads models anew
  group.reset();
  const auto seconds_so_far = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (training.is_first && result.code == ExitCode::kDone && !result.is_partial) {  // a spent budget has no time for it
    show_result(training, {resolved, training.folder.root, device, dtype, kReportShare * seconds_so_far(),
                           &monotonic_seconds, prompt});
  }
  const double seconds = seconds_so_far();
  tell(observers, &Observer::on_end, end_of(result, seconds));
  return result;
}

// Stopped before the first step: nothing is lost, class images that were generated are kept.
TrainResult stopped_early(const Training& training, int signal) {
  TrainResult result;
  result.code = exit_code_of(signal);
  result.output = training.folder.root;
  result.cause = stop_cause(training, cause_of(signal));
  tell(training.observers, &Observer::on_end, end_of(result, 0));
  return result;
}

// Before the first step a signal ends ranks one by one, each where it is. A rank that got it too has then lost none: it
// waited for one that was quicker to stop. 0 where that is not so.
int signal_before_steps(const Training& training, const Error& error) {
  const int signal = training.stop.signal();
  const bool was_left = error.code() == ExitCode::kPeerLost && !training.has_begun;
  return was_left && signal != kOtherRankFailed ? signal : 0;
}

EndEvent failure_of(const Error& error) {
  EndEvent end{RunEnd::kFailed};
  end.code = error.code();
  end.cause = error.problems().front().line();
  return end;
}

// Tells observers and the run folder of a failure.
void report_failure(const Training& training, const Error& error) {
  if (training.is_first || error.code() == ExitCode::kPeerLost) {
    write_last_error(real_file_system(), training.folder, error);
  }
  EndEvent end = failure_of(error);
  end.step = training.reached.step();
  end.seconds = training.reached.seconds();
  tell(training.observers, &Observer::on_end, end);
}

TrainResult train_locked(const Training& training, const RankEnv& ranks, Preflight preflight) {
  const TrainConfig& config = training.config;
  std::shared_ptr<ProcessGroup> group;  // outlives what it trains, to say why that ends
  bool has_device = false;
  // The others end with this rank, and with its exit code, also while they still wait for it to come.
  const auto tell_others = [&](const Error& error) {
    if (!has_device) say_failure_before_meeting(ranks, error, training.stop);
    if (group != nullptr && ends_all_ranks(error)) group->say_failure(error);
  };
  try {
    try {
      const std::string device_text = device_for_rank(config.run.device, ranks, model::has_usable_gpu());
      const torch::Device device = model::parse_device(device_text, "device");
      has_device = true;
      group = connect_ranks(ranks, device, config.dist, rank_configuration(config, device.is_cuda()), &training.stop);
      compare_replicas(*group, config, preflight);
      std::unique_ptr<ReceivedCheckpoint> received =
          share_checkpoint(*group, config, device, preflight.resume, training.stop);
      agree_on_format(*group, config, device, preflight.resume);
      // Only now, since a run that is refused must leave the one before it as it is.
      if (training.is_first && config.run.overwrite && !continues(config)) {
        clear_folder(real_file_system(), training.folder);
      }
      return run_to_end(training, group, {device, std::move(preflight), std::move(received)});
    } catch (const c10::Error& error) {
      rethrow_torch_error(error, config);
    }
  } catch (const StopRequest& request) {
    return stopped_early(training, request.signal);
  } catch (const Error& error) {
    if (const int signal = signal_before_steps(training, error); signal != 0) return stopped_early(training, signal);
    tell_others(error);
    report_failure(training, error);
    throw;
  } catch (const std::exception& error) {
    const Error said = described(error, config);
    tell_others(said);
    report_failure(training, said);
    throw;
  }
}

void tell_waiting_ranks(const Error& error, const StopFlag& stop) {
  RankEnv ranks;
  try {
    ranks = read_rank_env();
  } catch (const ConfigError&) {  // the launcher's variables are what is wrong
    return;
  }
  say_failure_before_meeting(ranks, error, stop);
}

TrainResult train_or_refuse(const TrainConfig& config, Warned& warned, RunNotifier& notifier,
                            const PortraitReaderSource& portrait_readers, StopFlag& stop) {
  using Seconds = std::chrono::seconds;
  const auto started = std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch());
  const RunFolder folder = run_folder(config);
  const bool is_first = is_first_rank();
  Preflight preflight;
  std::optional<RunLock> lock;
  try {
    preflight = run_preflight(config, portrait_readers, PhotoUse::kTrain);
    refuse_problems(preflight);
    if (is_first) {
      real_file_system().create_directories(folder.root);
      lock.emplace(folder.lock());
    }
  } catch (const Error& error) {
    tell_waiting_ranks(error, stop);
    throw;
  }
  const RankEnv ranks = read_rank_env();
  const double earlier = is_first && continues(config) ? seconds_of(attempts_before(folder, 0)) : 0;
  RunBudget budget(config.rental, config.observe.price_per_hour, earlier);
  PreemptionGuard guard(config.rental, ranks.local_rank == 0, stop, warned.warn());
  ReachedStep reached;
  bool has_begun = false;
  const RunObservers run_observers(config, warned.observers, {&budget, &guard, &notifier, &reached}, is_first,
                                   started.count());
  const WarnedScope scope(warned, is_first ? run_observers.all() : warned.observers);
  return train_locked({config, folder, is_first, budget, guard, run_observers.all(), portrait_readers, stop,
                       started.count(), reached, has_begun},
                      ranks, std::move(preflight));
}

// The last words of a run, to whom it asks for: webhook and command. After a lost peer the run is not over where sdtune
// launch may restart its ranks; if it does not, it calls finish_run itself.
void finish(const TrainConfig& config, RunNotifier& notifier, const EndEvent& end,
            const std::vector<Observer*>& observers) {
  if (!is_first_rank() || (end.code == ExitCode::kPeerLost && restarts_left() > 0)) return;
  notifier.finish(static_cast<int>(end.code), end.cause, end.end == RunEnd::kFailed);
  if (config.rental.on_finish.empty()) return;
  const std::optional<Problem> warning =
      run_finish_command(config.rental.on_finish, {static_cast<int>(end.code), end.cause, run_folder(config).root});
  if (warning) tell(observers, &Observer::on_warning, *warning);
}

// Silent where its address is refused.
RunNotifier notifier_of(const TrainConfig& config, const Warned& warned) {
  const std::string url = notify_problems(config.rental.notify).empty() ? config.rental.notify : "";
  return {url, run_folder(config).root, warned.warn()};
}

}  // namespace

void finish_run(const TrainConfig& config, const Error& error, const std::vector<Observer*>& observers) {
  const Warned warned{observers};
  RunNotifier notifier = notifier_of(config, warned);
  finish(config, notifier, failure_of(error), observers);
}

TrainResult train(const TrainConfig& config, const std::vector<Observer*>& observers,
                  const PortraitReaderSource& portrait_readers, StopFlag& stop) {
  Warned warned{observers};
  RunNotifier notifier = notifier_of(config, warned);
  const model::TensorMemoryScope memory;
  try {
    const TrainResult result = train_or_refuse(config, warned, notifier, portrait_readers, stop);
    model::release_tensor_memory();
    finish(config, notifier, end_of(result, 0), observers);
    return result;
  } catch (const Error& error) {
    finish(config, notifier, failure_of(error), observers);
    throw;
  } catch (const std::exception& error) {
    finish(config, notifier, failure_of(described(error, config)), observers);
    throw;
  }
}

}  // namespace sdtune::train
