#include "train/run/step_log.h"

#include <cmath>
#include <utility>

#include "model/base/clock.h"
#include "train/optim/clip_grad.h"
#include "train/run/memory_use.h"
#include "train/run/train_step.h"

namespace sdtune::train {

namespace {

// So far may the host be ahead of a GPU: more would only fill queues.
constexpr std::size_t kMostPending = 20;
// What the estimate is made from: this much time, or this many steps where they are quick.
constexpr double kTimedSeconds = 2;
constexpr std::int64_t kStepsToEstimate = 3;

}  // namespace

StepLog::StepLog(const Run& run, const std::vector<Observer*>& observers)
    : run_(run),
      observers_(observers),
      guard_(run.config.precision.max_skipped_steps),
      start_(std::chrono::steady_clock::now()) {}

void StepLog::begin() {
  start_ = std::chrono::steady_clock::now();
  last_elapsed_ = last_flush_ = paused_ = 0;
  begin_interval();
}

void StepLog::push(std::uint64_t step, const torch::Tensor& numbers) {
  pending_.push_back(
      {step, model::HostCopy(numbers), seconds_since_1970(), seconds_since_start(), run_.buckets->overlapped_share()});
  while (!pending_.empty() && pending_.front().numbers.ready()) tell_of_first();
  if (pending_.size() > kMostPending) run_.group->settle();  // where a peer is lost, the numbers would never come
  while (pending_.size() > kMostPending) tell_of_first();
  check_finite();
}

void StepLog::flush() {
  run_.group->settle();
  if (pending_.empty()) return;
  while (!pending_.empty()) tell_of_first();
  check_finite();
}

void StepLog::tell_of_first() {
  const StepEvent event = event_of(pending_.front());
  last_loss_finite_ = std::isfinite(event.loss);
  last_step_ = event.step;
  guard_.observe(event.skipped);
  tell(observers_, &Observer::on_step, event);
  previous_.emplace(std::move(pending_.front().numbers));
  pending_.pop_front();
  last_flush_ = seconds_since_start();
  estimate_the_rest();
}

// Called when the steps up to last_step_ are over, on a GPU too.
void StepLog::estimate_the_rest() {
  const Pace now{last_step_, last_flush_ - paused_};
  if (warm_up_.step == 0) warm_up_ = now;
  const std::int64_t steps = now.step - warm_up_.step;
  const double seconds = now.seconds - warm_up_.seconds;
  if (estimated_ || steps == 0 || (seconds < kTimedSeconds && steps < kStepsToEstimate)) return;
  estimated_ = true;
  if (now.step == run_.total_steps) return;
  tell(observers_, &Observer::on_estimate,
       EstimateEvent{run_.total_steps - now.step, seconds / static_cast<double>(steps)});
}

void StepLog::leave_out_pause() {
  begin_interval();
  last_elapsed_ = seconds_since_start();
  paused_ += last_elapsed_ - last_flush_;
}

// On a GPU the copy of any of its numbers marks where its queue is now: the host only queues the next step, so the
// host's clock does not say how long that takes.
void StepLog::begin_interval() {
  previous_.reset();
  if (run_.device.is_cuda()) previous_.emplace(run_.optimizer->updates());
}

double StepLog::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void StepLog::check_finite() const {
  if (!guard_.exhausted()) return;
  const std::vector<TrainedParameter>& parameters = run_.shards->parameters();
  const auto first = [&] {
    return run_.shards->is_sharded() ? first_non_finite(parameters, run_.gradient_sums) : first_non_finite(parameters);
  };
  guard_.fail(last_step_, last_loss_finite_ ? first() : "", run_.last_checkpoint);
}

StepEvent StepLog::event_of(const Pending& pending) {
  const auto* numbers = pending.numbers.wait().const_data_ptr<double>();
  StepEvent event;
  event.step = static_cast<std::int64_t>(pending.step) + 1;
  event.total_steps = run_.total_steps;
  event.epoch = run_.data.plan->epochs(pending.step + 1);
  event.loss_instance = numbers[kLossInstance];
  event.loss = numbers[kLossInstance];
  if (run_.has_prior()) {
    event.loss_prior = numbers[kLossPrior];
    event.loss += run_.config.objective.prior_loss_weight * numbers[kLossPrior];
  }
  const double factor = run_.schedule.factor(static_cast<std::int64_t>(numbers[kUpdatesBefore]));
  event.lr = run_.base_rates[0] * factor;
  if (run_.trains_text()) event.text_encoder_lr = run_.trains_text_at(pending.step) ? run_.base_rates[1] * factor : 0.0;
  event.grad_norm = numbers[kGradNorm];
  if (run_.scaler->enabled()) event.loss_scale = numbers[kLossScale];
  event.skipped = !std::isfinite(numbers[kGradNorm]);
  // The host runs ahead of a GPU, whose own clock says how long a step took.
  if (previous_) previous_->wait();  // LibTorch asks; it is over, since it was queued before the numbers
  const std::optional<double> on_device = previous_ ? pending.numbers.seconds_after(*previous_) : std::nullopt;
  const double seconds = on_device.value_or(pending.elapsed - last_elapsed_);
  event.images_per_s = seconds > 0 ? static_cast<double>(run_.data.plan->shape().effective()) / seconds : 0;
  event.elapsed = on_device ? last_elapsed_ + *on_device : pending.elapsed;
  event.time = pending.time + (event.elapsed - pending.elapsed);  // when it ended, and not when it was queued
  event.max_memory_bytes = max_memory_bytes(run_.device);
  last_elapsed_ = event.elapsed;
  add_ranks(event, pending);
  return event;
}

void StepLog::add_ranks(StepEvent& event, const Pending& pending) const {
  const torch::Tensor& numbers = pending.numbers.wait();
  const auto count = static_cast<std::size_t>(numbers.numel() - kStepNumbers);
  if (count == 0) return;
  const std::optional<RankBalance> balance = balance_of({numbers.const_data_ptr<double>() + kStepNumbers, count});
  event.overlapped_share = pending.overlapped_share;
  if (!balance) return;
  event.communication_share = balance->communication_share;
  event.straggler_ratio = balance->straggler_ratio;
  event.slowest_rank = balance->slowest_rank;
}

}  // namespace sdtune::train
