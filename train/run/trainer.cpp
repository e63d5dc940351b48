#include "train/run/trainer.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "train/observe/preview.h"
#include "train/observe/step_lines.h"
#include "train/parameters/trainable_parameters.h"
#include "train/resume/resume_fingerprint.h"
#include "train/run/export_model.h"
#include "train/run/memory_use.h"
#include "train/run/save_checkpoint.h"
#include "train/run/train_step.h"
#include "train/run/validation.h"

namespace sdtune::train {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// What was trained must not be lost with what only reads it: an exception that leaves the scope, whoever threw it,
// finds a checkpoint saved. Outside of a step all ranks have the same state, so the first one needs no other for it,
// unless states are shared out (read_weights).
class Trainer::SaveOnException {
 public:
  SaveOnException(Trainer& trainer, std::int64_t done)
      : trainer_(trainer), done_(done), exceptions_(std::uncaught_exceptions()) {}
  ~SaveOnException() {
    if (std::uncaught_exceptions() > exceptions_) trainer_.save_before_failing(done_);
  }
  SaveOnException(const SaveOnException&) = delete;
  SaveOnException& operator=(const SaveOnException&) = delete;

 private:
  Trainer& trainer_;
  std::int64_t done_;
  int exceptions_;
};

Trainer::Trainer(Run& run, const std::vector<Observer*>& observers, const PortraitReaderSource& portrait_readers,
                 const StopFlag& stop)
    : run_(run),
      observers_(observers),
      stop_(stop),
      writer_(real_file_system(), run.folder.checkpoints(), run.config.checkpoint.checkpoints_total_limit),
      background_(writer_),
      log_(run, observers),
      profiler_(real_file_system(), run.folder.profile(), run.group->is_first() ? run.config.observe.profile : 0,
                run.device, [this](const Problem& problem) { tell(observers_, &Observer::on_warning, problem); }) {
  if (!run_.config.identity.identity_steps) return;
  identity_.emplace(
      IdentityContext{run_.config, run_.folder, run_.data.photos.photos, std::exchange(run_.data.identity, {}),
                      always_recorded(run_.fingerprint), run_.bundle, run_.shards->parameters(), *run_.group,
                      run_.device, run_.dtype, run_.total_steps, portrait_readers, stop_},
      observers_);
}

TrainResult Trainer::train() {
  catch_up();
  std::int64_t done = run_.first_step;
  int signal = run_.stops->agreed_now();
  log_.begin();
  while (signal == 0 && done < run_.total_steps && !(identity_ && identity_->is_over(done))) {
    profiler_.begin_step(done);
    const torch::Tensor numbers = train_step(run_, static_cast<std::uint64_t>(done));
    tell_profile(profiler_.end_step());
    for (const Problem& warning : std::exchange(run_.warnings, {})) tell(observers_, &Observer::on_warning, warning);
    log_.push(static_cast<std::uint64_t>(done), numbers);
    ++done;
    if (run_.average) update_average(done);
    if (background_.is_over()) take_saved();
    if (is_saved_at(done)) save_beside_steps(done);
    if (is_validated_at(done)) validate(done);
    const bool is_evaluated = identity_ && identity_->is_due(done);
    if (is_evaluated) evaluate_identity(done);
    const bool paused = is_saved_at(done) || is_validated_at(done) || is_evaluated;
    if (paused) log_.leave_out_pause();
    signal = paused ? run_.stops->agreed_now() : run_.stops->agreed();  // after a pause ranks may wait
  }
  tell_profile(profiler_.finish());
  if (signal == 0 || signal == kBudgetSpent) signal = run_.stops->agreed_now();  // a signal comes first
  if (signal != 0 && signal != kBudgetSpent) return stopped(done, signal);
  if (signal == kBudgetSpent && done < run_.total_steps) save(done);
  TrainResult result = finished(done);
  result.is_partial = signal == kBudgetSpent && done < run_.total_steps;
  return result;
}

void Trainer::catch_up() {
  const bool is_evaluated = identity_ && identity_->lacks(run_.first_step);
  const bool is_validated = lacks_validation();
  if (is_validated) validate(run_.first_step);
  if (is_evaluated) evaluate_identity(run_.first_step);
}

bool Trainer::is_saved_at(std::int64_t done) const {
  return done % run_.config.checkpoint.checkpointing_steps == 0 && done != run_.total_steps;
}

bool Trainer::is_validated_at(std::int64_t done) const {
  const ObserveOptions& options = run_.config.observe;
  const bool validates = !options.validation_prompt.empty() || !options.validation_data_dir.empty();
  return validates && (done % options.validation_steps == 0 || done == run_.total_steps);
}

// A fresh run validates the base first. A resumed one validates where an earlier attempt was stopped before it had.
bool Trainer::lacks_validation() const {
  if (!is_validated_at(run_.first_step)) return false;
  if (run_.first_step == 0) return true;
  const ObserveOptions& options = run_.config.observe;
  // The images are written before the loss, and an earlier attempt may have had only one of both.
  const bool there = (options.validation_prompt.empty() ||
                      has_preview(run_.folder.samples(), run_.first_step, options.num_validation_images)) &&
                     (options.validation_data_dir.empty() || has_step_line(run_.folder.validation(), run_.first_step));
  return run_.group->gather_text(there ? "there" : "missing").front() == "missing";  // as the first rank sees it
}

void Trainer::update_average(std::int64_t done) {
  const bool text_is_fixed = run_.trains_text() && !run_.trains_text_at(static_cast<std::uint64_t>(done - 1));
  run_.average->update(done, text_is_fixed ? std::optional(kTextGroup) : std::nullopt);
}

void Trainer::tell_profile(const std::optional<ProfileEvent>& event) {
  if (event) tell(observers_, &Observer::on_profile, *event);
}

void Trainer::save_beside_steps(std::int64_t done) {
  if (!run_.group->is_first() || !can_save_in_background(run_)) return save(done);
  log_.flush();
  if (background_.is_begun()) take_saved();
  const auto start = std::chrono::steady_clock::now();
  background_.begin(copy_checkpoint(run_, done));
  copy_seconds_ = seconds_since(start);
  run_.group->barrier();
}

void Trainer::take_saved() {
  const auto start = std::chrono::steady_clock::now();
  const SavedCheckpoint saved = background_.take();
  const double waited = copy_seconds_ + seconds_since(start);
  run_.last_checkpoint = saved.path;
  tell(observers_, &Observer::on_checkpoint, CheckpointEvent{saved.step, saved.path, saved.seconds, waited});
  warn_of_old_checkpoint();
}

void Trainer::warn_of_old_checkpoint() {
  const std::optional<Problem> left = writer_.take_warning();
  if (!left) return;
  tell(observers_, &Observer::on_warning,
       Problem{left->where, left->what, "it takes its room on the disk; the next checkpoint tries again to remove it"});
}

void Trainer::take_saved_or_warn(const std::string& hint) {
  if (!background_.is_begun()) return;
  try {
    take_saved();
  } catch (const StorageError& error) {
    tell(observers_, &Observer::on_warning, Problem{"checkpoint", error.problems().front().line(), hint});
  }
}

void Trainer::save(std::int64_t done) {
  log_.flush();
  if (run_.group->is_first() || run_.shards->is_sharded()) write_checkpoint(done);
  run_.group->barrier();  // however long writing takes
}

void Trainer::write_checkpoint(std::int64_t done) {
  take_saved_or_warn("the next one is tried");
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path written = save_checkpoint(run_, writer_, done);
  if (!run_.group->is_first()) return;
  run_.last_checkpoint = written;
  const double seconds = seconds_since(start);
  tell(observers_, &Observer::on_checkpoint, CheckpointEvent{done, run_.last_checkpoint, seconds, seconds});
  warn_of_old_checkpoint();
}

void Trainer::read_weights(std::int64_t done, const std::function<void()>& use) {
  if (!run_.shards->is_sharded()) {
    const SaveOnException saved(*this, done);
    use();
    return run_.group->barrier();  // however long writing takes
  }
  std::exception_ptr own;
  try {
    use();
  } catch (const PeerLostError&) {
    throw;  // without that rank's states there is nothing to save
  } catch (const std::exception&) {
    own = std::current_exception();
  }
  try {
    save_after_failure(done, own != nullptr);
  } catch (const std::exception&) {
    if (!own) throw;  // else the failure before it says more
  }
  if (own) std::rethrow_exception(own);
}

void Trainer::save_after_failure(std::int64_t done, bool failed) {
  run_.group->barrier();
  const std::vector<std::string> answers = run_.group->gather_text(failed ? "failed" : "");
  const bool any = std::any_of(answers.begin(), answers.end(), [](const std::string& text) { return !text.empty(); });
  if (any && done != run_.first_step) save(done);
}

void Trainer::validate(std::int64_t done) {
  log_.flush();
  read_weights(done, [&] {
    ReadableModel readable;
    ValidationOutcome outcome;
    outcome.failure = make_readable(readable);
    if (!outcome.failure) outcome = validate_model(run_, done, stop_);
    readable = {};
    if (outcome.failure) return continue_without("validation", done, *outcome.failure);
    if (outcome.event && run_.group->is_first()) tell(observers_, &Observer::on_validation, *outcome.event);
  });
}

std::optional<SharedFailure> Trainer::make_readable(ReadableModel& readable) {
  if (!run_.average && !run_.resting) return std::nullopt;  // on every rank alike
  const std::optional<SharedFailure> failure = run_share(*run_.group, [&] {
    if (run_.average) readable.averaged = std::make_unique<AveragedWeights>(run_.shards->parameters(), *run_.average);
    readable.parts = std::make_unique<RestingParts::OnDevice>(run_.resting.get());
  });
  if (failure || !run_.average) return failure;
  run_.shards->share_weights();
  run_.group->settle();  // before anything is read that was computed with them
  return std::nullopt;
}

void Trainer::evaluate_identity(std::int64_t done) {
  log_.flush();
  read_weights(done, [&] {
    const std::vector<torch::Tensor> weights = result_weights(run_);
    ReadableModel readable;
    std::optional<SharedFailure> failure = make_readable(readable);
    if (!failure) failure = identity_->evaluate(done, weights);
    readable = {};
    if (failure) continue_without("identity evaluation", done, *failure);
  });
}

void Trainer::continue_without(const std::string& what, std::int64_t done, const SharedFailure& failure) {
  if (done == 0) failure.rethrow();  // nothing is lost yet, and it would fail again
  const bool memory_ran_out = failure.code == ExitCode::kOutOfMemory;
  if (memory_ran_out && run_.device.is_cuda()) c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
  if (done > run_.first_step) save(done);
  tell(observers_, &Observer::on_warning,
       Problem{what, "of step " + std::to_string(done) + " failed: " + failure.problem.line(),
               "a checkpoint of this step is saved, and training continues without that result"});
}

void Trainer::save_before_failing(std::int64_t done) noexcept {
  if (!run_.group->is_first() || done == run_.first_step) return;
  try {
    write_checkpoint(done);
  } catch (const std::exception&) {
    return;  // the failure that is under way says more
  }
}

TrainResult Trainer::stopped(std::int64_t done, int signal) {
  save(done);
  TrainResult result;
  result.code = exit_code_of(signal);
  result.cause = cause_of(signal);
  result.step = done;
  result.output = run_.folder.root;
  result.checkpoint = run_.last_checkpoint;
  return result;
}

TrainResult Trainer::finished(std::int64_t done) {
  log_.flush();
  TrainResult result;
  result.step = result.model_step = done;
  result.cause = done < run_.total_steps ? "early_stop_patience is over" : "all steps are done";
  read_weights(done, [&] {
    const std::vector<torch::Tensor> weights = result_weights(run_);
    if (!run_.group->is_first()) return;
    std::optional<IdentityEvaluation::Best> best;
    if (identity_) best = identity_->best();
    if (best) result.model_step = best->step;
    give_back_memory();  // of the steps: writing and reading takes some of its own
    export_model(real_file_system(), run_, best ? best->weights : weights, result.model_step);
  });
  take_saved_or_warn("the run is finished and its model is whole");
  result.output = run_.folder.root;
  result.model_path = run_.folder.model();
  result.checkpoint = run_.last_checkpoint;
  return result;
}

}  // namespace sdtune::train
