#include "app/launch/launch_options.h"

#include <charconv>

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList LaunchOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Launch");
  group.add("nproc", &nproc, "Ranks on this machine; with GPUs one a GPU.").aliases({"nproc_per_node"}).range(1, 1024);
  group.add("nnodes", &nnodes, "Machines; `launch` is started on each of them.").range(1, 8192);
  group.add("node_rank", &node_rank, "Number of this machine, from 0; rank 0 is on machine 0.").range(0, 8191);
  group
      .add("rendezvous", &rendezvous,
           "Address of machine 0 and a free port on it, the same on every machine; empty on one machine: a free port.")
      .placeholder("HOST:PORT");
  group
      .add("max_restarts", &max_restarts,
           "How often the ranks are restarted after a lost rank (exit code 138) or a rank that a signal ended; other "
           "failures are never retried.")
      .range(0, 1000);
  group.add("grace", &grace, "Time between SIGTERM and SIGKILL for ranks that are stopped because another one failed.")
      .unit("s")
      .range(0, 86400);
  return list;
}

Rendezvous parse_rendezvous(const std::string& text) {
  const auto refuse = [&] {
    return ConfigError("--rendezvous", "is not HOST:PORT (got '" + text + "'; allowed ports: 1 to 65535)",
                       "an IPv6 address is written [ADDRESS]:PORT");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) throw refuse();
  Rendezvous found{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, found.port);
  if (status != std::errc() || stop != end || found.port < 1 || found.port > 65535) throw refuse();
  if (found.host.front() == '[' && found.host.back() == ']') {
    found.host = found.host.substr(1, found.host.size() - 2);
  } else if (found.host.find(':') != std::string::npos) {
    throw refuse();
  }
  if (found.host.empty() || found.host.find_first_of(" \t/[]") != std::string::npos) throw refuse();
  return found;
}

double grace_with_trackers(const LaunchOptions& options, double tracker_timeout) {
  return options.node_rank == 0 ? options.grace + tracker_timeout : options.grace;
}

std::vector<Problem> launch_problems(const LaunchOptions& options) {
  std::vector<Problem> problems;
  if (options.node_rank >= options.nnodes) {
    problems.push_back({"--node-rank",
                        "is not below the number of machines (got " + std::to_string(options.node_rank) +
                            "; allowed: 0 to " + std::to_string(options.nnodes - 1) + ")",
                        ""});
  }
  if (options.rendezvous.empty()) {
    if (options.nnodes > 1) {
      problems.push_back(
          {"--rendezvous", "is not given, and there are several machines", "name machine 0: --rendezvous HOST:29500"});
    }
    return problems;
  }
  try {
    parse_rendezvous(options.rendezvous);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return problems;
}

}  // namespace sdtune::app
