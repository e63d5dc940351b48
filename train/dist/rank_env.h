// Who this process is among the ranks, from the environment that a launcher (or a person) sets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sdtune::train {

struct RankEnv {
  std::int64_t rank = 0;              // RANK: 0 .. world_size - 1
  std::int64_t world_size = 1;        // WORLD_SIZE
  std::int64_t local_rank = 0;        // LOCAL_RANK: among the ranks of this host; the device index
  std::int64_t local_world_size = 1;  // LOCAL_WORLD_SIZE; where it is not set and LOCAL_RANK is, world_size
  std::string master_address;         // MASTER_ADDR: host of the store
  std::int64_t master_port = 0;       // MASTER_PORT
  bool agent_store = false;           // TORCHELASTIC_USE_AGENT_STORE: torchrun owns the store, every rank is a client
  std::int64_t attempt = 0;           // TORCHELASTIC_RESTART_COUNT: how often the ranks were restarted
  std::string run_id;                 // TORCHELASTIC_RUN_ID
  std::int64_t restarts_left = 0;     // SDTUNE_RESTARTS_LEFT: how often sdtune launch may still restart the ranks
};

// The value of an environment variable, or nothing.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string&)>;

// One rank when neither RANK nor WORLD_SIZE is set, nor what mpirun or srun set (rank_variables.h). Throws ConfigError
// naming the variable: one without the other, not a number, out of range, no MASTER_ADDR or MASTER_PORT with several
// ranks.
RankEnv read_rank_env(const EnvironmentReader& read);
RankEnv read_rank_env();  // from the process environment

// Whether this process is rank 0; also where the environment says nothing that read_rank_env takes, since the run is
// refused for that.
bool is_first_rank();

// How often sdtune launch, where it started this process, may still restart the ranks; else 0.
std::int64_t restarts_left();

// "auto" and "cuda" with several ranks on a host mean this rank's own GPU: "cuda:<local_rank>". Else as given.
std::string device_for_rank(const std::string& device, const RankEnv& env, bool gpu_usable);

}  // namespace sdtune::train
