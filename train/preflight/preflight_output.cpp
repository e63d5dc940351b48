#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <system_error>

#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/options/field.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/config/run_folder.h"
#include "train/dist/rank_env.h"
#include "train/preflight/disk_space.h"
#include "train/preflight/preflight_checks.h"
#include "train/preflight/run_lock.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kGibibyte = 1024.0 * kMebibyte;

// The folder itself, or the nearest one above that exists.
fs::path nearest_existing(const fs::path& folder) {
  fs::path path = fs::absolute(folder);
  while (!fs::exists(path) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path;
}

std::string readable_bytes(double bytes) {
  if (bytes < kGibibyte) return std::to_string(static_cast<std::int64_t>(bytes / kMebibyte)) + " MiB";
  const auto tenths = static_cast<std::int64_t>(bytes / kGibibyte * 10.0);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

// Checkpoints that will be written beside those that are there: the oldest goes only when the newest is safe.
std::int64_t more_checkpoints(const TrainConfig& config, const fs::path& checkpoints) {
  const std::int64_t every = std::max<std::int64_t>(1, config.checkpoint.checkpointing_steps);
  const std::int64_t saves = config.run.max_train_steps ? (*config.run.max_train_steps - 1) / every + 1 : 2;
  const std::int64_t kept = config.checkpoint.checkpoints_total_limit.value_or(saves);
  const std::int64_t there = std::ssize(list_checkpoints(checkpoints));
  return std::max<std::int64_t>(1, std::min(kept, saves - 1) + 1 - there);
}

// So many checkpoints, and the model. Unset where the base cannot be made, or lacks the layers: others say why.
std::optional<std::int64_t> bytes_needed(const TrainConfig& config, std::int64_t checkpoints) {
  try {
    const fs::path base = find_model_folder(config.run.base);
    const WrittenBytes bytes = written_bytes(config, model::empty_bundle(model::BundleConfigs::read(base), base));
    return checkpoints * bytes.checkpoint + bytes.best + bytes.model;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_room(const TrainConfig& config, const RunFolder& folder, std::vector<Problem>& problems) {
  std::error_code error;
  const fs::path existing = nearest_existing(folder.root);
  const fs::space_info space = fs::space(existing, error);
  const std::int64_t checkpoints = more_checkpoints(config, folder.checkpoints());
  const std::optional<std::int64_t> needed = bytes_needed(config, checkpoints);
  if (error || !needed || space.available >= static_cast<std::uintmax_t>(*needed)) return;
  problems.push_back({"output",
                      "no space for " + std::to_string(checkpoints) +
                          (checkpoints == 1 ? " checkpoint" : " checkpoints") + " and the model on the disk of " +
                          existing.string() + " (got " + readable_bytes(static_cast<double>(space.available)) +
                          "; needed: " + readable_bytes(static_cast<double>(*needed)) + ")",
                      "choose another --output"});
}

}  // namespace

bool check_writable(const std::string& option, const fs::path& folder, std::vector<Problem>& problems) {
  if (const std::optional<Problem> problem = tilde_problem(option, folder)) {
    problems.push_back(*problem);
    return false;
  }
  const std::string hint = "choose another " + flag_name(option);
  std::error_code fault;  // not that nothing is there: a folder above that may not be entered, too long a name
  if (!fs::exists(folder, fault) && fault) {
    problems.push_back({option, "cannot reach " + folder.string() + ": " + fault.message(), hint});
    return false;
  }
  const fs::path existing = nearest_existing(folder);
  if (!fs::is_directory(existing)) {
    problems.push_back({option, existing.string() + " is not a folder", hint});
    return false;
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    problems.push_back({option, "cannot write into " + existing.string() + ": " + std::strerror(errno), hint});
    return false;
  }
  return true;
}

void check_output(const TrainConfig& config, const std::optional<model::ModelSurvey>& base,
                  std::vector<Problem>& problems) {
  const RunFolder folder = run_folder(config);
  if (!check_writable("output", folder.root, problems)) return;
  const bool continues = !config.checkpoint.resume_from_checkpoint.empty() || config.run.overwrite;
  // The first rank alone writes there, and takes the lock.
  if (const std::optional<Problem> held = is_first_rank() ? RunLock::holder(folder.lock()) : std::nullopt) {
    problems.push_back(*held);  // neither resuming nor overwriting would be right
  } else if (is_first_rank() && folder.has_run() && !continues) {
    problems.push_back({folder.root.string(), "has a run in it",
                        "--resume-from-checkpoint latest goes on with it, --overwrite deletes it"});
  }
  if (base && is_first_rank()) check_room(config, folder, problems);
}

}  // namespace sdtune::train
