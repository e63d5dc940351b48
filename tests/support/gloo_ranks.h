// Real Gloo ranks, as threads of the test's process: each has its own store connection and backend.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "model/base/error.h"
#include "train/dist/process_group.h"

namespace sdtune::test {

inline std::int64_t free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket_fd);
  return ntohs(address.sin_port);
}

inline train::RankEnv env_of(std::int64_t rank, std::int64_t world_size, std::int64_t port) {
  train::RankEnv env;
  env.rank = env.local_rank = rank;
  env.world_size = env.local_world_size = world_size;
  env.master_address = "127.0.0.1";
  env.master_port = port;
  return env;
}

// LibTorch 2.11's flight recorder is one for the process and adds a group to its map without a lock, so ranks that are
// threads can crash in it (seen: a segmentation fault in recordWithResetEnabled). A process that is one rank cannot.
inline void keep_flight_recorder_off() {
  static const int once = setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  static_cast<void>(once);
}

// Runs `body` as every rank; returns what each threw, "" for nothing. hash: of the rank's options.
inline std::vector<std::string> run_ranks(std::int64_t count, const train::DistOptions& options,
                                          const std::function<void(train::ProcessGroup&)>& body,
                                          const std::function<std::string(std::int64_t)>& hash = {}) {
  keep_flight_recorder_off();
  const std::int64_t port = free_port();
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group =
            train::connect_ranks(env_of(rank, count, port), torch::kCPU, options, hash ? hash(rank) : "same");
        body(*group);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.problems().front().line();
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::string("bug: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace sdtune::test
