#include "python/src/interrupt_scope.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace sdtune::python {

namespace {

// What the handler may touch: lock-free atomics alone.
std::atomic<std::atomic<bool>*> current_flag{nullptr};
std::atomic<StopFlag*> current_stop{nullptr};
std::atomic<int> received{0};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  received.store(signal);
  if (std::atomic<bool>* flag = current_flag.load()) flag->store(true);
  if (StopFlag* stop = current_stop.load()) stop->request(signal);
}

bool on_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// Takes `signal` over and returns the old handler, unless the signal is ignored or `only_default` and not the default.
std::optional<struct sigaction> take_over(int signal, bool only_default) {
  struct sigaction old = {};
  sigaction(signal, nullptr, &old);
  const bool is_plain = (old.sa_flags & SA_SIGINFO) == 0;
  if (is_plain && old.sa_handler == SIG_IGN) return std::nullopt;
  if (only_default && !(is_plain && old.sa_handler == SIG_DFL)) return std::nullopt;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
  return old;
}

}  // namespace

InterruptScope::InterruptScope(std::atomic<bool>& flag) {
  if (!on_main_thread() || current_flag.load() != nullptr || current_stop.load() != nullptr) return;
  current_flag.store(&flag);
  install();
}

InterruptScope::InterruptScope(StopFlag& stop) {
  if (!on_main_thread() || current_flag.load() != nullptr || current_stop.load() != nullptr) return;
  current_stop.store(&stop);
  install();
}

InterruptScope::~InterruptScope() {
  restore();
}

void InterruptScope::install() {
  received.store(0);
  installed_ = true;
  stack_.emplace();
  old_interrupt_ = take_over(SIGINT, false);
  old_terminate_ = take_over(SIGTERM, true);
}

void InterruptScope::restore() {
  if (!installed_) return;
  installed_ = false;
  if (old_interrupt_) sigaction(SIGINT, &*old_interrupt_, nullptr);
  if (old_terminate_) sigaction(SIGTERM, &*old_terminate_, nullptr);
  stack_.reset();
  current_flag.store(nullptr);
  current_stop.store(nullptr);
}

void InterruptScope::finish() {
  if (!installed_) return;
  restore();
  const int signal = received.exchange(0);
  if (signal == 0) return;
  if (signal == SIGTERM) {
    PyErr_SetObject(PyExc_SystemExit, py::int_(static_cast<int>(ExitCode::kTerminated)).ptr());
    throw py::error_already_set();
  }
  PyErr_SetInterruptEx(signal);
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace sdtune::python
