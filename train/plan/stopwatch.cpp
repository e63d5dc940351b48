#include "train/plan/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/base/clock.h"

namespace sdtune::train {

Stopwatch::Stopwatch() : Stopwatch([begin = std::chrono::steady_clock::now()] { return seconds_since(begin); }) {}

Stopwatch::Stopwatch(Clock clock) : clock_(std::move(clock)), begun_(clock_()) {}

void Stopwatch::on_phase(const std::string& name, std::int64_t done, std::int64_t /*total*/) {
  const double now = seconds();
  if (name == "generating class images") {
    if (first_image_ < 0) first_image_ = last_;
    generated_ = done;
    generating_ = now - first_image_;
  }
  last_ = now;
}

void Stopwatch::on_generation(const GenerationEvent&) {
  last_ = seconds();
}

void Stopwatch::on_start(const RunSummary& summary) {
  batch_ = static_cast<double>(summary.batch);
  started_ = seconds();
}

// By what the event says and not by when it comes: events of a GPU's steps come late, and several at once. Its rate
// leaves out checkpoints, whose waits are told when they are written, perhaps behind the last step.
void Stopwatch::on_step(const StepEvent& event) {
  last_step_ = seconds();
  times_.peak_bytes = event.max_memory_bytes;
  if (event.images_per_s <= 0) return;  // no time passed between two readings of the clock
  const double step = batch_ / event.images_per_s;
  if (event.step == 1) {
    first_step_ = step;
    return;
  }
  later_steps_ += step;
  ++times_.timed_steps;
}

void Stopwatch::on_checkpoint(const CheckpointEvent& event) {
  times_.checkpoint = event.waited;
}

void Stopwatch::on_end(const EndEvent&) {
  times_.class_image = generated_ > 0 ? generating_ / static_cast<double>(generated_) : 0;
  times_.step = later_steps_ / static_cast<double>(std::max<std::int64_t>(1, times_.timed_steps));
  times_.start = std::max(0.0, started_ - generating_ + first_step_ - times_.step);
  times_.finish = seconds() - last_step_;
}

}  // namespace sdtune::train
