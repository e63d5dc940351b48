#include "app/cli/stop_signals.h"

#include <unistd.h>

#include <csignal>

#include "model/base/signal_stack.h"

namespace sdtune::app {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "the handler may use only lock-free atomics");

std::atomic<void (*)(int)> notify{nullptr};

void on_signal(int number) {
  int none = 0;
  if (!signal_number.compare_exchange_strong(none, number)) _exit(128 + number);
  requested.store(true);
  if (void (*const on_stop)(int) = notify.load()) on_stop(number);
}

}  // namespace

void ignore_closed_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

void install_stop_signals(void (*on_stop)(int signal)) {
  static const SignalStack stack;  // of the main thread, where signals arrive
  notify.store(on_stop);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::atomic<bool>& stop_requested() {
  return requested;
}

int stop_signal() {
  return signal_number.load();
}

int exit_code_after_stop(int code) {
  return stop_signal() == 0 ? code : 128 + stop_signal();
}

}  // namespace sdtune::app
