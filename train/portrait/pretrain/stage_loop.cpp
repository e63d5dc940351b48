#include "train/portrait/pretrain/stage_loop.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "train/checkpoint/checkpoint_reader.h"
#include "train/optim/clip_grad.h"
#include "train/portrait/pretrain/stage_result.h"
#include "train/precision/compute_weight.h"

namespace sdtune::train::pretrain {

namespace {

constexpr std::int64_t kCheckpointsKept = 2;

}  // namespace

double learning_rate_factor(const StagePlan& plan, std::int64_t step) {
  const auto at = static_cast<double>(step), total = static_cast<double>(plan.total_steps);
  const double warmup = std::min(1.0, (at + 1) / static_cast<double>(std::max<std::int64_t>(1, plan.warmup_steps)));
  const double fall = plan.decay_share * total;
  return warmup * (fall > 0 ? std::clamp((total - at) / fall, 0.0, 1.0) : 1.0);
}

StageLoop::StageLoop(Stage& stage, StagePlan plan, std::function<void(const StageProgress&)> report)
    : stage_(stage),
      plan_(std::move(plan)),
      report_(std::move(report)),
      writer_(real_file_system(), plan_.folder / "checkpoints", kCheckpointsKept),
      loss_sum_(torch::zeros({}, torch::TensorOptions(torch::kFloat64).device(plan_.device))),
      finite_count_(torch::zeros({}, torch::TensorOptions(torch::kInt64).device(plan_.device))),
      non_finite_in_row_(torch::zeros_like(finite_count_)),
      longest_row_(torch::zeros_like(finite_count_)) {
  real_file_system().create_directories(plan_.folder / "checkpoints");
  build_optimizer();
  resume();
  const std::string failure = metrics_.open(plan_.folder / "metrics.jsonl");
  if (!failure.empty()) throw StorageError((plan_.folder / "metrics.jsonl").string(), failure);
}

void StageLoop::build_optimizer() {
  std::vector<TrainedParameter> trained;
  for (const NamedParameter& parameter : stage_.parameters()) {
    const torch::Tensor start = plan_.dtype == torch::kFloat32 ? torch::Tensor() : parameter.weight.detach().clone();
    to_compute_dtype(parameter.weight, plan_.dtype, plan_.device);
    trained.push_back({parameter.name, parameter.weight, torch::Tensor(), start, 0});
    trained.back().weight.set_requires_grad(true);
  }
  buckets_ = std::make_unique<GradientBuckets>(stage_.parameters(), group_, BucketOptions{});
  for (std::size_t i = 0; i < trained.size(); ++i) trained[i].gradient = buckets_->gradient(i);
  optimizer_ = make_optimizer(std::move(trained), plan_.optim);
  average_ = std::make_unique<WeightAverage>(*optimizer_, plan_.average_decay);
}

void StageLoop::resume() {
  const FoundCheckpoint found = find_checkpoint("auto", plan_.folder / "checkpoints");
  if (!found.path) {
    if (load_stage_result(plan_.folder, stage_.name(), plan_.identity, plan_.total_steps, average_->values()))
      step_ = plan_.total_steps;
    return;
  }
  for (const Problem& damaged : found.warnings) {
    if (plan_.on_line) plan_.on_line(damaged.line() + ": an older checkpoint is taken");
  }
  const RunState state = read_run_state(*found.path);
  ResumeFingerprint saved = state.fingerprint;
  saved.settings.erase(stage_.name() + "_steps");  // the first runs kept it; a stage may be made longer
  const std::vector<Problem> changes = fingerprint_changes(saved, plan_.identity);
  if (!changes.empty()) throw ConfigError(changes);
  if (state.step > plan_.total_steps) {
    throw ConfigError(stage_.name() + "_steps",
                      "is less than " + found.path->string() + " has done (got " + std::to_string(plan_.total_steps) +
                          "; allowed: at least " + std::to_string(state.step) + ")",
                      "a stage of fewer steps is a new one: choose another --output");
  }
  load_optimizer(*found.path, state, *optimizer_);
  load_averages(*found.path, average_->values());
  step_ = state.step;
  attempt_ = state.attempt + 1;
}

void StageLoop::write_result() {
  write_stage_result(real_file_system(), plan_.folder, plan_.identity, step_, average_->values());
}

StageEnd StageLoop::run(const StageLimits& limits) {
  last_report_ = std::chrono::steady_clock::now();
  // Killed between its last checkpoint and its result.
  if (step_ == plan_.total_steps && !has_stage_result(plan_.folder, step_)) write_result();
  while (step_ < plan_.total_steps) {
    const bool stopped = limits.stop != nullptr && limits.stop->signal() != 0;
    if (stopped || std::chrono::steady_clock::now() >= limits.deadline) {
      save();
      return stopped ? StageEnd::kStopped : StageEnd::kOutOfTime;
    }
    try {
      train_one_step();
    } catch (const WaitEnded&) {
      continue;  // to the limits
    }
    const bool is_last = step_ == plan_.total_steps;
    if (is_last || step_ % plan_.report_steps == 0) report();
    if (is_last || step_ % plan_.checkpoint_steps == 0) save();
    if (is_last) write_result();
    if (plan_.evaluation_steps > 0 && (is_last || step_ % plan_.evaluation_steps == 0)) evaluate();
  }
  return StageEnd::kFinished;
}

void StageLoop::train_one_step() {
  buckets_->begin_step(1);
  buckets_->begin_round();
  const torch::Tensor loss = stage_.loss(static_cast<std::uint64_t>(step_));
  loss.backward();
  buckets_->finish_step();
  const torch::TensorOptions on_device = torch::TensorOptions().device(plan_.device);
  const ClippedGradient gradient =
      clip_gradient(optimizer_->parameters(), torch::ones({}, on_device), plan_.optim.max_grad_norm);
  const double rate = plan_.optim.learning_rate * learning_rate_factor(plan_, step_);
  optimizer_->step(torch::full({1}, rate, on_device.dtype(torch::kFloat64)), gradient.factor);
  average_->update(++step_);
  count_loss(loss.detach());
}

void StageLoop::count_loss(const torch::Tensor& loss) {
  const torch::Tensor finite = loss.isfinite();
  loss_sum_ += torch::where(finite, loss.to(torch::kFloat64), torch::zeros_like(loss_sum_));
  finite_count_ += finite;
  non_finite_in_row_ = torch::where(finite, torch::zeros_like(non_finite_in_row_), non_finite_in_row_ + 1);
  longest_row_ = torch::maximum(longest_row_, non_finite_in_row_);
  ++loss_count_;
}

void StageLoop::report() {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_report_).count();
  StageProgress progress;
  progress.stage = stage_.name();
  progress.step = step_;
  progress.total_steps = plan_.total_steps;
  const auto finite = finite_count_.item<std::int64_t>();
  progress.loss =
      finite > 0 ? loss_sum_.item<double>() / static_cast<double>(finite) : std::numeric_limits<double>::quiet_NaN();
  progress.images_per_s = static_cast<double>(loss_count_ * stage_.batch_size()) / seconds;
  progress.rate = plan_.optim.learning_rate * learning_rate_factor(plan_, step_ - 1);
  if (longest_row_.item<std::int64_t>() >= kMostNonFinite) {
    throw NonFiniteError(stage_.name(),
                         "the loss was not finite in " + std::to_string(kMostNonFinite) +
                             " steps in a row before step " + std::to_string(step_),
                         "begin again in another --output with a lower learning rate");
  }
  Json line = {{"step", step_},       {"loss", progress.loss}, {"pictures_per_s", progress.images_per_s},
               {"lr", progress.rate}, {"attempt", attempt_},   {"samples", step_ * stage_.batch_size()}};
  if (finite < loss_count_) line["non_finite"] = loss_count_ - finite;
  metrics_.append(line.dump() + "\n");
  if (report_) report_(progress);
  loss_sum_.zero_();
  finite_count_.zero_();
  longest_row_.zero_();
  loss_count_ = 0;
  last_report_ = now;
}

void StageLoop::evaluate() {
  if (!evaluate_) return;
  const AveragedWeights averaged(optimizer_->parameters(), *average_);
  const torch::NoGradGuard no_grad;
  evaluate_(step_);
  last_report_ = std::chrono::steady_clock::now();
}

void StageLoop::save() {
  RunState state;
  state.step = step_;
  state.updates = optimizer_->updates().item<std::int64_t>();
  state.effective_batch = stage_.batch_size();
  state.attempt = attempt_;
  state.fingerprint = plan_.identity;
  writer_.write(*optimizer_, state, average_->values());
}

void StageLoop::settle() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < optimizer_->parameters().size(); ++i) {
    torch::Tensor weight = optimizer_->parameters()[i].weight;
    weight.set_data(average_->values()[i].second.clone());
  }
}

}  // namespace sdtune::train::pretrain
