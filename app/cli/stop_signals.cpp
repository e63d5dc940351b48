#include "app/cli/stop_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "model/base/signal_stack.h"

namespace sdtune::app {
namespace {

constinit StopFlag process_flag;
// Of a rank: what started it, which hands on the signals that it gets. 0: this is no rank.
constinit std::atomic<pid_t> launcher{0};
// Whether the launcher, and whether anybody else, has sent a signal.
constinit std::atomic<bool> was_handed_on{false}, was_sent{false};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler may use only lock-free atomics");

void on_signal(int number, siginfo_t* info, void* /*context*/) {
  // SIGUSR1 is what schedulers send ahead of a limit (sbatch --signal), and means what SIGTERM means.
  const int meaning = number == SIGUSR1 ? SIGTERM : number;
  const pid_t parent = launcher.load();
  const bool is_of_launcher = parent != 0 && info->si_pid == parent;
  if (is_of_launcher && info->si_code == SI_QUEUE) {  // by launch itself, which hands signals on by kill
    process_flag.request(kOtherRankFailed);
    return;
  }
  std::atomic<bool>& has_asked = is_of_launcher ? was_handed_on : was_sent;
  const bool asks_again = has_asked.exchange(true);
  const bool is_first = process_flag.request(meaning);
  // systemd and Slurm send a signal to every process of a job: a rank gets it twice, the second time by its launcher.
  if (!is_first && (asks_again || parent == 0)) _exit(128 + meaning);
}

}  // namespace

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free: those below are open by now.
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

void ignore_closed_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

void take_ends_of_children() {
  std::signal(SIGCHLD, SIG_DFL);
}

StopFlag& stop_flag() {
  return process_flag;
}

StopFlag& install_stop_signals() {
  static const SignalStack stack;  // of the main thread, where signals arrive
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr) launcher = ::getppid();  // torchrun sets it, as sdtune launch does
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  return process_flag;
}

}  // namespace sdtune::app
