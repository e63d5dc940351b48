#include "app/launch/old_store.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>

namespace sdtune::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLongestWait{10};
constexpr int kBetweenMs = 50;
constexpr int kAnswerMs = 1000;

// Whether something listens at one of the address's numbers.
bool takes_connections(const addrinfo& address) {
  const int file = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return false;
  static_cast<void>(::connect(file, address.ai_addr, address.ai_addrlen));
  pollfd answer{file, POLLOUT, 0};
  int fault = 1;
  socklen_t length = sizeof(fault);
  const bool answered = ::poll(&answer, 1, kAnswerMs) == 1 &&
                        ::getsockopt(file, SOL_SOCKET, SO_ERROR, &fault, &length) == 0 && fault == 0;
  ::close(file);
  return answered;
}

}  // namespace

int wait_for_old_store(const Rendezvous& place, SignalReader& signals) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0) return 0;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  const Clock::time_point deadline = Clock::now() + kLongestWait;
  while (Clock::now() < deadline) {
    bool listens = false;
    for (const addrinfo* one = found; one != nullptr && !listens; one = one->ai_next) listens = takes_connections(*one);
    if (!listens) return 0;
    pollfd file{signals.file(), POLLIN, 0};
    ::poll(&file, 1, kBetweenMs);
    const int signal = signals.next();
    if (signal != 0 && signal != SIGCHLD) return signal;
  }
  return 0;
}

}  // namespace sdtune::app
