#include "train/rental/preemption_watch.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <utility>

namespace sdtune::train {

namespace {

constexpr double kAnswerSeconds = 3;
constexpr std::chrono::milliseconds kSlice{50};

}  // namespace

PreemptionWatch::PreemptionWatch(std::unique_ptr<PreemptionSource> source, StopFlag& stop)
    : source_(std::move(source)), stop_(stop) {
  // Signals are the main thread's, whose handler has a stack of its own.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PreemptionWatch::~PreemptionWatch() {
  cancelled_.store(true);
  thread_.join();
}

std::string PreemptionWatch::notice() const {
  const std::lock_guard lock(mutex_);
  return notice_;
}

std::string PreemptionWatch::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, "");
}

void PreemptionWatch::watch() {
  while (!cancelled_.load()) {
    try {
      if (const std::optional<PreemptionNotice> found = source_->ask(kAnswerSeconds, cancelled_)) {
        const std::lock_guard lock(mutex_);
        notice_ = found->text;
        stop_.request(kPreemption);
        return;
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(failed_, true)) failure_ = error.what();
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(source_->interval());
    while (!cancelled_.load() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kSlice);
  }
}

}  // namespace sdtune::train
