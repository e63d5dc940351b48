// Collectives of a backend that may fail or block at any moment: the host never waits for one without looking, every
// little while, whether it failed, whether the peers live, and whether peer_timeout has passed.
//
// No thread of a backend may end the process or abort a communicator by itself (see cuda/nccl_backend.cpp). So a sum
// that a lost peer never joins stays on the device for ever, and what is queued behind it, an optimizer step for
// example, never runs: the host may queue it before the sum is over, and finds the loss at the next look.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/dist/call_thread.h"
#include "train/dist/peer_watch.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

struct CollectiveRules {
  std::chrono::milliseconds timeout{};  // for the peers' answer, once the host waits
  torch::Device device = torch::kCPU;   // where the tensors are
  bool runs_ahead = false;              // the host queues work that the device does later: a GPU
};

class Collectives {
 public:
  using Backend = c10::intrusive_ptr<c10d::Backend>;
  using Work = c10::intrusive_ptr<c10d::Work>;

  // `make` may block as well. `peers` must outlive this.
  Collectives(const std::function<Backend()>& make, PeerWatch& peers, const CollectiveRules& rules);
  ~Collectives();  // after a loss the backend gets a few seconds to end, and is then left to itself
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // What follows belongs to this step, 1-based; 0: before the first.
  void begin_step(std::int64_t step) { step_ = step; }
  std::int64_t step() const { return step_; }

  // All of these throw PeerLostError, which names the lost rank, its host and the step, or what a rank said of its
  // failure (rank_failure.h). `doing` says what for, in the form "summing over the ranks".
  Work start(const char* doing, const std::function<Work(c10d::Backend&)>& call);
  // On a CPU finish(). On a GPU the current stream waits and the host goes on; the newest work of a step is remembered
  // and stands for those before it, so works have to come here in the order in which they were started.
  void order(const char* doing, const Work& work);
  // Returns when the work is over.
  void finish(const char* doing, const Work& work);
  // Before an optimizer step: checks all remembered work, and waits for that of earlier steps, so that a loss is
  // found within a step while the device never waits for the host.
  void check_remembered();
  // Before the host reads anything from the device.
  void finish_remembered();

  // The waits of order() and finish() since the last call; of very many the newest.
  std::vector<CollectiveWait> take_waits();

  // Runs what talks to the others; what it throws, other than this rank's own errors, means that a rank is lost.
  void attempt(const char* doing, const std::function<void()>& call);

 private:
  struct Remembered {
    const char* doing;
    std::int64_t step;
    Work work;
  };

  void watch(std::chrono::steady_clock::time_point start, const char* advice = "") const;
  void wait_until_over(c10d::Work& work) const;
  void remember_wait(model::Timestamp begin);
  [[noreturn]] void lose(const char* doing, const std::string& cause);

  PeerWatch& peers_;
  CollectiveRules rules_;
  CallThread caller_;
  Backend backend_;
  std::vector<Remembered> remembered_;
  std::deque<CollectiveWait> waits_;
  std::int64_t step_ = 0;
  bool lost_ = false;
};

}  // namespace sdtune::train
