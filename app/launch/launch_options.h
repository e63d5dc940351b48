// The options of `launch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/options/field.h"

namespace sdtune::app {

struct LaunchOptions {
  std::int64_t nproc = 1;
  std::int64_t nnodes = 1;
  std::int64_t node_rank = 0;
  std::string rendezvous;  // HOST:PORT; empty: this machine and a free port
  std::int64_t max_restarts = 3;
  double grace = 30;  // s

  FieldList fields();
};

struct Rendezvous {
  std::string host;
  std::int64_t port = 0;
};

// "HOST:PORT", "[IPv6]:PORT". Throws ConfigError naming --rendezvous.
Rendezvous parse_rendezvous(const std::string& text);

// s between SIGTERM and SIGKILL where --grace was not given: rank 0, which is on machine 0, waits up to
// `tracker_timeout` s at its end until trackers have everything.
double grace_with_trackers(const LaunchOptions& options, double tracker_timeout);

// What is wrong with options that are each allowed by themselves.
std::vector<Problem> launch_problems(const LaunchOptions& options);

}  // namespace sdtune::app
