#include "app/launch/signal_reader.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/error.h"

namespace sdtune::app {

SignalReader::SignalReader() {
  sigset_t read;
  sigemptyset(&read);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&read, number);
  file_ = ::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC);
  if (file_ < 0) throw StorageError("launch", std::string("no file for signals: ") + std::strerror(errno));
  ::sigprocmask(SIG_BLOCK, &read, &before_);
}

SignalReader::~SignalReader() {
  ::close(file_);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int SignalReader::next() {
  signalfd_siginfo info{};
  return ::read(file_, &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace sdtune::app
