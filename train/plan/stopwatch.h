// Times the parts of a probe's run by what the run tells.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "train/observe/observer.h"
#include "train/plan/timing_run.h"

namespace sdtune::train {

class Stopwatch : public Observer {
 public:
  using Clock = std::function<double()>;  // s, steady

  Stopwatch();
  explicit Stopwatch(Clock clock);

  void on_phase(const std::string& name, std::int64_t done, std::int64_t total) override;
  void on_generation(const GenerationEvent& event) override;
  void on_start(const RunSummary& summary) override;
  void on_step(const StepEvent& event) override;
  void on_checkpoint(const CheckpointEvent& event) override;
  void on_end(const EndEvent& event) override;

  // Complete once the run has ended.
  const ProbedTimes& times() const { return times_; }

 private:
  double seconds() const { return clock_() - begun_; }

  Clock clock_;
  double begun_;
  ProbedTimes times_;
  double last_ = 0, first_image_ = -1, generating_ = 0, started_ = 0, last_step_ = 0;
  double batch_ = 0;        // images of a step
  double first_step_ = 0;   // s that it took
  double later_steps_ = 0;  // s that times_.timed_steps of the others took
  std::int64_t generated_ = 0;
};

}  // namespace sdtune::train
