// The environment of a rank, with torchrun's names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::app {

// Where the ranks of this machine stand among all.
struct RankPlan {
  std::int64_t nproc = 1;
  std::int64_t nnodes = 1;
  std::int64_t node_rank = 0;
  std::string address;       // MASTER_ADDR
  std::int64_t port = 0;     // MASTER_PORT
  std::int64_t attempt = 0;  // restarts so far
  std::int64_t cores = 1;    // of this machine, shared out between its ranks
  // How often launch may still restart the ranks: SDTUNE_RESTARTS_LEFT, by which rank 0 knows whether this is the end.
  std::int64_t restarts_left = 0;
};

// `own` ("NAME=value" each) with the variables of the rank `local_rank` in place of those of other launchers.
// OMP_NUM_THREADS stays as it is where it is set, else it is cores / nproc, at least 1.
std::vector<std::string> rank_environment(const std::vector<std::string>& own, const RankPlan& plan,
                                          std::int64_t local_rank);

}  // namespace sdtune::app
