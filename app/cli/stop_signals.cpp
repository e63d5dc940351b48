#include "app/cli/stop_signals.h"

#include <unistd.h>

#include <csignal>

#include "model/base/signal_stack.h"

namespace sdtune::app {
namespace {

constinit StopFlag process_flag;

void on_signal(int number) {
  // SIGUSR1 is what schedulers send ahead of a limit (sbatch --signal), and means what SIGTERM means.
  const int meaning = number == SIGUSR1 ? SIGTERM : number;
  if (!process_flag.request(meaning)) _exit(128 + meaning);
}

}  // namespace

void ignore_closed_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

StopFlag& stop_flag() {
  return process_flag;
}

StopFlag& install_stop_signals() {
  static const SignalStack stack;  // of the main thread, where signals arrive
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  return process_flag;
}

}  // namespace sdtune::app
