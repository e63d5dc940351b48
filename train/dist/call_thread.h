// Calls that may never return, made on a thread of their own, so that the caller can give one up.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace sdtune::train {

class CallThread {
 public:
  CallThread() = default;
  ~CallThread();  // waits for the thread unless a call was given up
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Returns when `call` has returned, and throws what it threw. `watch` is called meanwhile, every few milliseconds;
  // what it throws gives the call up: its thread is left to itself, so `call` must own all that it uses. The next call
  // then has a new thread.
  void run(std::function<void()> call, const std::function<void()>& watch);

 private:
  struct State;
  static void serve(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

// For `watch`: throws PeerLostError(who, "does not answer ...") once `limit` has passed since this was made.
std::function<void()> give_up_after(std::chrono::milliseconds limit, const std::string& who, const std::string& what);

}  // namespace sdtune::train
