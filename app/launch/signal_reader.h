// SIGINT, SIGTERM, SIGUSR1 and SIGCHLD as bytes to read instead of interruptions.
#pragma once

#include <csignal>

namespace sdtune::app {

class SignalReader {
 public:
  SignalReader();   // throws StorageError when the system gives no file for them
  ~SignalReader();  // the signals act as before
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  int file() const { return file_; }                  // becomes readable when a signal comes
  const sigset_t& before() const { return before_; }  // what was blocked before
  int next();                                         // the next signal, 0 for none

 private:
  int file_ = -1;
  sigset_t before_;
};

}  // namespace sdtune::app
