#include "app/launch/rank_environment.h"

#include <algorithm>
#include <map>
#include <set>

namespace sdtune::app {
namespace {

std::string name_of(const std::string& entry) {
  return entry.substr(0, entry.find('='));
}

}  // namespace

std::vector<std::string> rank_environment(const std::vector<std::string>& own, const RankPlan& plan,
                                          std::int64_t local_rank) {
  std::map<std::string, std::string> set{
      {"RANK", std::to_string(plan.node_rank * plan.nproc + local_rank)},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"WORLD_SIZE", std::to_string(plan.nnodes * plan.nproc)},
      {"LOCAL_WORLD_SIZE", std::to_string(plan.nproc)},
      {"GROUP_RANK", std::to_string(plan.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(plan.nnodes)},
      {"MASTER_ADDR", plan.address},
      {"MASTER_PORT", std::to_string(plan.port)},
      {"TORCHELASTIC_RUN_ID", "sdtune-launch"},
      {"SDTUNE_RESTARTS_LEFT", std::to_string(plan.restarts_left)},
  };
  // Ranks of one attempt meet under its number. Several machines need not count alike: one may have restarted while
  // another still waited.
  if (plan.nnodes == 1) set["TORCHELASTIC_RESTART_COUNT"] = std::to_string(plan.attempt);
  const bool has_threads =
      std::any_of(own.begin(), own.end(), [](const std::string& entry) { return name_of(entry) == "OMP_NUM_THREADS"; });
  if (!has_threads) set["OMP_NUM_THREADS"] = std::to_string(std::max<std::int64_t>(1, plan.cores / plan.nproc));
  static const std::set<std::string> kOfOthers{"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"};
  std::vector<std::string> result;
  for (const std::string& entry : own) {
    if (set.count(name_of(entry)) == 0 && kOfOthers.count(name_of(entry)) == 0) result.push_back(entry);
  }
  for (const auto& [name, value] : set) result.push_back(name + "=" + value);
  return result;
}

}  // namespace sdtune::app
