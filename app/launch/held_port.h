// A free TCP port of this machine that stays free until rank 0 listens on it.
#pragma once

#include <cstdint>

namespace sdtune::app {

// Holds the port with a socket that never listens: the system gives the number to no other program, and a program that
// names it, with SO_REUSEADDR as LibTorch's store does, can listen on it.
class HeldPort {
 public:
  HeldPort();  // throws ConfigError when the machine has none
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  std::int64_t port() const { return port_; }

 private:
  int socket_ = -1;
  std::int64_t port_ = 0;
};

}  // namespace sdtune::app
