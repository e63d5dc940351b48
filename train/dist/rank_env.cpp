#include "train/dist/rank_env.h"

#include <charconv>
#include <cstdlib>

#include "model/base/error.h"
#include "train/dist/rank_variables.h"

namespace sdtune::train {

namespace {

// The number in `name`, within [least, most]; `fallback` when it is not set.
std::int64_t read_number(const EnvironmentReader& read, const std::string& name, std::int64_t fallback,
                         std::int64_t least, std::int64_t most) {
  const std::optional<std::string> text = read(name);
  if (!text) return fallback;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stop != end || value < least || value > most) {
    throw ConfigError(name,
                      "not a number in range (got '" + *text + "'; allowed: " + std::to_string(least) + " to " +
                          std::to_string(most) + ")",
                      "the environment variable is set by the launcher (sdtune launch, torchrun, srun, mpirun)");
  }
  return value;
}

void require(const EnvironmentReader& read, const std::string& name, const std::string& because) {
  const std::optional<std::string> value = read(name);
  if (!value || value->empty()) {
    throw ConfigError(name, "the environment variable is not set, and " + because,
                      "start the ranks with sdtune launch or torchrun --no-python");
  }
}

}  // namespace

RankEnv read_rank_env(const EnvironmentReader& environment) {
  const EnvironmentReader read = with_other_launchers(environment);
  RankEnv env;
  if (!read("RANK") && !read("WORLD_SIZE")) return env;
  require(read, "RANK", "WORLD_SIZE is");
  require(read, "WORLD_SIZE", "RANK is");
  constexpr std::int64_t kMostRanks = 65536;
  env.world_size = read_number(read, "WORLD_SIZE", 1, 1, kMostRanks);
  env.rank = read_number(read, "RANK", 0, 0, env.world_size - 1);
  // Batch scripts set what PyTorch itself asks for, and LOCAL_RANK, without LOCAL_WORLD_SIZE.
  const std::int64_t most_local = read("LOCAL_RANK") ? env.world_size : 1;
  env.local_world_size = read_number(read, "LOCAL_WORLD_SIZE", most_local, 1, env.world_size);
  env.local_rank = read_number(read, "LOCAL_RANK", 0, 0, env.local_world_size - 1);
  env.attempt = read_number(read, "TORCHELASTIC_RESTART_COUNT", 0, 0, 1'000'000);
  env.run_id = read("TORCHELASTIC_RUN_ID").value_or("");
  env.restarts_left = read_number(read, "SDTUNE_RESTARTS_LEFT", 0, 0, 1'000'000);
  env.agent_store = read("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  if (env.world_size > 1) {
    require(read, "MASTER_ADDR", "there are several ranks");
    require(read, "MASTER_PORT", "there are several ranks");
    env.master_address = *read("MASTER_ADDR");
    env.master_port = read_number(read, "MASTER_PORT", 0, 1, 65535);
  }
  return env;
}

RankEnv read_rank_env() {
  return read_rank_env([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

bool is_first_rank() {
  try {
    return read_rank_env().rank == 0;
  } catch (const ConfigError&) {
    return true;
  }
}

std::int64_t restarts_left() {
  try {
    return read_rank_env().restarts_left;
  } catch (const ConfigError&) {
    return 0;
  }
}

std::string device_for_rank(const std::string& device, const RankEnv& env, bool gpu_usable) {
  if (env.world_size == 1) return device;
  if (device == "cuda" || (device == "auto" && gpu_usable)) return "cuda:" + std::to_string(env.local_rank);
  return device;
}

}  // namespace sdtune::train
