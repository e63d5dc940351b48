// A stage's next batch, prepared by another thread while the device computes the step before.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <utility>

namespace sdtune::train::pretrain {

template <class Batch>
class BatchAhead {
 public:
  // prepare: what step `step` trains on, a function of the step alone. is_ready: whether that would wait for nothing;
  // it is asked on the caller's thread, so `prepare` runs on another one only where it ends soon.
  BatchAhead(std::function<Batch(std::uint64_t step)> prepare, std::function<bool(std::uint64_t step)> is_ready)
      : prepare_(std::move(prepare)), is_ready_(std::move(is_ready)) {}
  BatchAhead(const BatchAhead&) = delete;
  BatchAhead& operator=(const BatchAhead&) = delete;

  // The batch of `step`, on the host; throws what preparing it threw. `ahead`: begin with the next one, on a thread of
  // its own. A CPU that trains has no core to spare for it.
  Batch take(std::uint64_t step, bool ahead) {
    const bool is_prepared = next_.valid() && next_step_ == step;
    Batch batch = is_prepared ? next_.get() : prepare_alone(step);
    if (ahead && is_ready_(step + 1)) {
      next_step_ = step + 1;
      next_ = std::async(std::launch::async, prepare_, next_step_);
    }
    return batch;
  }

 private:
  // What was prepared for another step is dropped.
  Batch prepare_alone(std::uint64_t step) {
    next_ = {};
    return prepare_(step);
  }

  std::function<Batch(std::uint64_t)> prepare_;
  std::function<bool(std::uint64_t)> is_ready_;
  std::uint64_t next_step_ = 0;
  std::future<Batch> next_;  // last: its end waits for the thread that uses the others
};

}  // namespace sdtune::train::pretrain
