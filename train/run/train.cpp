#include "train/run/train.h"

#include <chrono>
#include <exception>
#include <new>
#include <optional>

#include "model/core/device.h"
#include "model/core/out_of_memory.h"
#include "model/core/tf32_scope.h"
#include "train/dist/stop_request.h"
#include "train/observe/event_file.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"
#include "train/observe/report_page.h"
#include "train/observe/validation_log.h"
#include "train/preflight/machine_warnings.h"
#include "train/preflight/preflight.h"
#include "train/preflight/run_lock.h"
#include "train/run/build_run.h"
#include "train/run/compare_replicas.h"
#include "train/run/micro_batch.h"
#include "train/run/run_record.h"
#include "train/run/trainer.h"

namespace sdtune::train {

namespace {

// The caller's observers and the files that every run writes, on the first rank; nothing on the others.
class RunObservers {
 public:
  RunObservers(const TrainConfig& config, const std::vector<Observer*>& callers, bool is_first) {
    if (!is_first) return;
    all_ = callers;
    const Warn warn = [callers](const Problem& problem) { tell(callers, &Observer::on_warning, problem); };
    add(std::make_unique<MetricsLog>(real_file_system(), warn));
    add(std::make_unique<Preview>(real_file_system(), warn));
    add(std::make_unique<ValidationLog>(real_file_system(), warn));
    add(std::make_unique<ReportPage>(real_file_system(), config.observe.price_per_hour, warn));
    if (config.observe.report_to == "tensorboard") add(std::make_unique<EventFile>(warn));
  }
  const std::vector<Observer*>& all() const { return all_; }

 private:
  void add(std::unique_ptr<Observer> observer) {
    all_.push_back(observer.get());
    own_.push_back(std::move(observer));
  }

  std::vector<std::unique_ptr<Observer>> own_;
  std::vector<Observer*> all_;
};

// --overwrite: what an earlier run left, except class images, which cost time and are checked before they are used.
void clear_folder(FileSystem& files, const RunFolder& folder) {
  for (const std::filesystem::path& part : {folder.checkpoints(), folder.best(), folder.samples(), folder.model()}) {
    if (std::filesystem::exists(part)) files.remove_tree(part);
  }
  for (const std::filesystem::path& file : {folder.config(), folder.record(), folder.metrics(), folder.validation(),
                                            folder.identity(), folder.report(), folder.last_error()}) {
    if (std::filesystem::exists(file)) files.unlink(file);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.root)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.unlink(entry.path());
  }
}

// What every rank must agree on: the options, but not which device a rank has.
std::string rank_configuration(TrainConfig config) {
  config.run.device = "";
  return config_to_yaml(config.fields(), {});
}

TrainResult run_to_end(const TrainConfig& config, std::unique_ptr<ProcessGroup> group, torch::Device device,
                       Preflight preflight, const std::vector<Observer*>& observers,
                       const PortraitReaderSource& portrait_readers, const StopFlag& stop) {
  const auto start = std::chrono::steady_clock::now();
  const model::Tf32Scope tf32(config.precision.allow_tf32);
  for (const Problem& warning : machine_warnings(config)) tell(observers, &Observer::on_warning, warning);
  for (const Problem& warning : preflight.resume.warnings) tell(observers, &Observer::on_warning, warning);
  const std::unique_ptr<Run> run = build_run(config, std::move(group), device, preflight, observers, stop);
  preflight = {};  // the photos that it kept
  if (run->group->is_first()) write_run_record(real_file_system(), *run);
  tell(observers, &Observer::on_start, summarize(*run));
  run->group->barrier();  // ranks load and encode at different speeds
  const TrainResult result = Trainer(*run, observers, portrait_readers, stop).train();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const RunEnd end = result.code == ExitCode::kDone ? RunEnd::kDone : RunEnd::kStopped;
  tell(observers, &Observer::on_end, EndEvent{end, result.step, result.model_step, result.model_path, seconds.count()});
  return result;
}

// Stopped before the first step: nothing is lost, class images that were generated are kept.
TrainResult stopped_early(const RunFolder& folder, int signal, const std::vector<Observer*>& observers) {
  tell(observers, &Observer::on_end, EndEvent{RunEnd::kStopped});
  TrainResult result;
  result.code = exit_code_of(signal);
  result.output = folder.root;
  return result;
}

// Called while a c10::Error is handled. Memory that ran out becomes our error with its hint; everything else passes as
// the object that was thrown.
[[noreturn]] void rethrow_torch_error(const c10::Error& error, const TrainConfig& config) {
  if (!model::is_out_of_memory(error)) throw;
  const std::string text = error.what_without_backtrace();
  throw OutOfMemoryError("memory", text.substr(0, text.find('\n')), memory_hint(config));
}

// An exception that is none of ours, as last_error.json says it: with the words and exit code of the error line.
Error described(const std::exception& error, const TrainConfig& config) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return OutOfMemoryError("memory", "the system has no memory left", memory_hint(config));
  }
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return Error(ExitCode::kBug, "internal error", text.substr(0, text.find('\n')));
}

}  // namespace

TrainResult train(const TrainConfig& config, const std::vector<Observer*>& observers,
                  const PortraitReaderSource& portrait_readers, StopFlag& stop) {
  Preflight preflight = run_preflight(config, portrait_readers, PhotoUse::kTrain);
  refuse_problems(preflight);
  const RunFolder folder = run_folder(config);
  const RankEnv ranks = read_rank_env();
  const bool is_first = ranks.rank == 0;
  std::optional<RunLock> lock;
  if (is_first) {
    real_file_system().create_directories(folder.root);
    lock.emplace(folder.lock());
  }
  const RunObservers run_observers(config, observers, is_first);
  try {
    try {
      const std::string device_text = device_for_rank(config.run.device, ranks, model::has_usable_gpu());
      const torch::Device device = model::parse_device(device_text, "device");
      std::unique_ptr<ProcessGroup> group = connect_ranks(ranks, device, config.dist, rank_configuration(config));
      compare_replicas(*group, config, preflight);
      // Only now, since a run that is refused must leave the one before it as it is.
      if (is_first && config.run.overwrite && config.checkpoint.resume_from_checkpoint.empty()) {
        clear_folder(real_file_system(), folder);
      }
      return run_to_end(config, std::move(group), device, std::move(preflight), run_observers.all(), portrait_readers,
                        stop);
    } catch (const c10::Error& error) {
      rethrow_torch_error(error, config);
    }
  } catch (const StopRequest& request) {
    return stopped_early(folder, request.signal, run_observers.all());
  } catch (const Error& error) {
    if (is_first || error.code() == ExitCode::kPeerLost) write_last_error(real_file_system(), folder, error);
    tell(run_observers.all(), &Observer::on_end, EndEvent{RunEnd::kFailed});
    throw;
  } catch (const std::exception& error) {
    if (is_first) write_last_error(real_file_system(), folder, described(error, config));
    tell(run_observers.all(), &Observer::on_end, EndEvent{RunEnd::kFailed});
    throw;
  }
}

}  // namespace sdtune::train
