#include "train/dist/call_thread.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

constexpr std::chrono::milliseconds kCallLook{5};

}  // namespace

struct CallThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call;  // empty: nothing to do
  std::exception_ptr error;
  bool done = false;
  bool stop = false;
};

CallThread::~CallThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  thread_.join();
}

void CallThread::serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->stop || (state->call && !state->done); });
    if (state->stop) return;
    std::function<void()> call = std::exchange(state->call, nullptr);
    lock.unlock();
    std::exception_ptr error;
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
    call = nullptr;  // what it owns ends here, also when the call was given up
    lock.lock();
    state->error = error;
    state->done = true;
    state->changed.notify_all();
  }
}

void CallThread::run(std::function<void()> call, const std::function<void()>& watch) {
  if (!thread_.joinable()) {
    state_ = std::make_shared<State>();
    thread_ = std::thread(serve, state_);
  }
  std::unique_lock lock(state_->mutex);
  state_->call = std::move(call);
  state_->done = false;
  state_->changed.notify_all();
  try {
    while (!state_->changed.wait_for(lock, kCallLook, [&] { return state_->done; })) {
      lock.unlock();
      watch();
      lock.lock();
    }
  } catch (...) {
    lock.lock();
    state_->stop = true;  // should the call ever return
    lock.unlock();
    thread_.detach();
    throw;
  }
  if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

std::function<void()> give_up_after(std::chrono::milliseconds limit, const std::string& who, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  return [deadline, who, what] {
    if (std::chrono::steady_clock::now() > deadline) throw PeerLostError(who, what);
  };
}

}  // namespace sdtune::train
