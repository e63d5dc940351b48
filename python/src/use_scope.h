// One call of a pipeline at a time: a scheduler keeps the state of one run, and a call may replace parts of the model.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace sdtune::python {

class UseScope;

// Who is using a pipeline.
class PipelineUse {
  friend class UseScope;
  std::mutex mutex_;
  std::atomic<std::thread::id> thread_{};
};

// Takes the pipeline for one call. Made under the interpreter lock, which it releases while another thread's call goes
// on; so no thread ever waits for a pipeline while it holds the interpreter lock, and a callback always gets that lock.
// A callback that calls its own pipeline would wait for ever: throws std::runtime_error (RuntimeError in Python), and
// as require_unforked_process does.
class UseScope {
 public:
  explicit UseScope(PipelineUse& use);
  ~UseScope();
  UseScope(const UseScope&) = delete;
  UseScope& operator=(const UseScope&) = delete;

 private:
  PipelineUse& use_;
};

}  // namespace sdtune::python
