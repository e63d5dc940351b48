#include "train/dist/rank_variables.h"

#include <charconv>
#include <map>

#include "model/base/error.h"
#include "train/dist/slurm_nodelist.h"

namespace sdtune::train {
namespace {

using Variables = std::map<std::string, std::string>;

// What one launcher calls them.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

constexpr Names kMpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
};
constexpr std::int64_t kFirstPort = 15000;
constexpr std::int64_t kPorts = 10000;
constexpr std::int64_t kStepStride = 997;  // jobs with neighbouring numbers may share a node, too

void copy(const EnvironmentReader& read, const char* from, const char* to, Variables& found) {
  if (const std::optional<std::string> value = read(from)) found[to] = *value;
}

// The first of these variables that is set.
std::optional<std::string> any_of(const EnvironmentReader& read, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::optional<std::string> value = read(name)) return value;
  }
  return std::nullopt;
}

std::int64_t number_or(const std::optional<std::string>& text, std::int64_t fallback) {
  std::int64_t value = 0;
  if (!text) return fallback;
  const auto [stop, status] = std::from_chars(text->data(), text->data() + text->size(), value);
  return status == std::errc() && stop == text->data() + text->size() && value >= 0 ? value : fallback;
}

// Where the variables come from, to name it in an error, and their values under torchrun's names.
struct Found {
  const char* rank_variable = nullptr;
  Variables values;
};

Found find_mpi(const EnvironmentReader& read) {
  for (const Names& names : kMpi) {
    if (!read(names.rank) || !read(names.world_size)) continue;
    Found found{names.rank, {}};
    copy(read, names.rank, "RANK", found.values);
    copy(read, names.world_size, "WORLD_SIZE", found.values);
    copy(read, names.local_rank, "LOCAL_RANK", found.values);
    copy(read, names.local_world_size, "LOCAL_WORLD_SIZE", found.values);
    return found;
  }
  return {};
}

Found find_slurm(const EnvironmentReader& read) {
  if (!read("SLURM_PROCID") || !read("SLURM_STEP_ID")) return {};
  const std::optional<std::string> tasks = any_of(read, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if (!tasks) return {};
  Found found{"SLURM_PROCID", {{"WORLD_SIZE", *tasks}}};
  copy(read, "SLURM_PROCID", "RANK", found.values);
  copy(read, "SLURM_LOCALID", "LOCAL_RANK", found.values);
  copy(read, "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", found.values);
  copy(read, "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", found.values);
  const std::int64_t on_node =
      tasks_on_node(any_of(read, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}).value_or(""),
                    number_or(read("SLURM_NODEID"), 0));
  found.values["LOCAL_WORLD_SIZE"] = on_node > 0 ? std::to_string(on_node) : *tasks;
  if (*tasks == "1") return found;
  for (const char* variable : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const std::optional<std::string> list = read(variable);
    if (!list || read("MASTER_ADDR")) continue;
    found.values["MASTER_ADDR"] = first_host(*list, variable);
    break;
  }
  if (const std::int64_t job = number_or(read("SLURM_JOB_ID"), -1); job >= 0) {
    const std::int64_t step = number_or(read("SLURM_STEP_ID"), 0);
    found.values["MASTER_PORT"] = std::to_string(kFirstPort + (job + kStepStride * step) % kPorts);
  }
  return found;
}

// A batch script that exports RANK=$SLURM_PROCID before srun gives every rank the number 0. A launcher inside of srun
// or mpirun (torchrun, accelerate, sdtune launch) numbers its ranks anew, and says so in TORCHELASTIC_RUN_ID.
void refuse_contradiction(const EnvironmentReader& read, const Found& other) {
  if (other.rank_variable == nullptr || read("TORCHELASTIC_RUN_ID")) return;
  const std::string rank = read("RANK").value_or("");
  const std::string& theirs = other.values.at("RANK");
  if (read("WORLD_SIZE") != other.values.at("WORLD_SIZE") || rank == theirs) return;
  throw ConfigError("RANK",
                    "contradicts " + std::string(other.rank_variable) + ", which counts as many ranks (got " + rank +
                        " and " + theirs + ")",
                    "unset RANK and WORLD_SIZE: the other launcher's variables are read too");
}

// `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE beside its own variables, which alone say where the ranks meet and which
// number a task has on its node. An mpirun inside of a job step counts otherwise than srun.
Found find_other(const EnvironmentReader& read) {
  Found mpi = find_mpi(read);
  if (mpi.values.count("LOCAL_RANK") > 0) return mpi;
  Found slurm = find_slurm(read);
  if (mpi.rank_variable == nullptr) return slurm;
  if (slurm.rank_variable != nullptr && slurm.values.at("RANK") == mpi.values.at("RANK") &&
      slurm.values.at("WORLD_SIZE") == mpi.values.at("WORLD_SIZE")) {
    return slurm;
  }
  // Cray's mpiexec calls them so, and `srun` with Cray's library, too: only here, where srun is not what counts.
  copy(read, "PMI_LOCAL_RANK", "LOCAL_RANK", mpi.values);
  copy(read, "PMI_LOCAL_SIZE", "LOCAL_WORLD_SIZE", mpi.values);
  return mpi;
}

}  // namespace

EnvironmentReader with_other_launchers(const EnvironmentReader& read) {
  const Found other = find_other(read);
  if (read("RANK") || read("WORLD_SIZE")) {
    refuse_contradiction(read, other);
    return read;
  }
  return [read, values = other.values](const std::string& name) -> std::optional<std::string> {
    if (std::optional<std::string> own = read(name)) {
      if (name == "MASTER_ADDR" || name == "MASTER_PORT" || values.count(name) == 0) return own;
    }
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace sdtune::train
