#include "train/run/trainer.h"

#include <chrono>

#include "train/run/export_model.h"
#include "train/run/stop_request.h"
#include "train/run/train_step.h"
#include "train/run/validation.h"

namespace sdtune::train {

Trainer::Trainer(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop)
    : run_(run),
      observers_(observers),
      stop_(stop),
      writer_(real_file_system(), run.folder.checkpoints(), run.config.checkpoint.checkpoints_total_limit),
      log_(run, observers),
      draws_pictures_(!run.config.observe.validation_prompt.empty()) {}

TrainResult Trainer::train() {
  for (std::int64_t done = run_.first_step; done < run_.total_steps;) {
    if (const int signal = agreed_signal(); signal != 0) return stopped(done, signal);
    const torch::Tensor numbers = train_step(run_, static_cast<std::uint64_t>(done));
    log_.push(static_cast<std::uint64_t>(done), numbers);
    ++done;
    const bool is_last = done == run_.total_steps;
    const bool saves = is_due(done, run_.config.checkpoint.checkpointing_steps) && !is_last;
    const bool validates = draws_pictures_ && (is_due(done, run_.config.observe.validation_steps) || is_last);
    if (saves) save(done);
    if (validates) validate(done);
    if (saves || validates) log_.leave_out_pause();
  }
  return finished();
}

int Trainer::agreed_signal() const {
  if (run_.group->world_size() == 1) return stop_.signal();
  for (const std::string& signal : run_.group->gather_text(std::to_string(stop_.signal()))) {
    if (signal != "0") return std::stoi(signal);
  }
  return 0;
}

void Trainer::save(std::int64_t done) {
  log_.flush();
  if (!run_.group->is_first()) return;
  const auto start = std::chrono::steady_clock::now();
  RunState state;
  state.step = done;
  state.updates = run_.optimizer->updates().item<std::int64_t>();
  state.effective_batch = run_.data.plan->shape().effective();
  state.attempt = run_.attempt;
  state.scaler = run_.scaler->state();
  state.identity = run_.identity;
  run_.last_checkpoint = writer_.write(*run_.optimizer, state);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  tell(observers_, &Observer::on_checkpoint, CheckpointEvent{done, run_.last_checkpoint, seconds.count()});
}

void Trainer::validate(std::int64_t done) {
  log_.flush();
  const ValidationEvent event = draw_validation(run_, done);
  if (run_.group->is_first()) tell(observers_, &Observer::on_validation, event);
}

TrainResult Trainer::stopped(std::int64_t done, int signal) {
  save(done);
  TrainResult result;
  result.code = exit_code_of(signal);
  result.step = done;
  result.output = run_.folder.root;
  result.checkpoint = run_.last_checkpoint;
  return result;
}

TrainResult Trainer::finished() {
  log_.flush();
  if (run_.group->is_first()) export_model(real_file_system(), run_);
  run_.group->barrier();
  TrainResult result;
  result.step = run_.total_steps;
  result.output = run_.folder.root;
  result.model_path = run_.folder.model();
  result.checkpoint = run_.last_checkpoint;
  return result;
}

}  // namespace sdtune::train
