#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>

#include "model/files/file_system.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/config/run_folder.h"
#include "train/preflight/run_lock.h"
#include "train/prove/json_lines.h"
#include "train/prove/parts.h"
#include "train/run/attempt_ledger.h"

namespace sdtune::train {

namespace {

// What `--resume-from-checkpoint latest` takes; a save that was killed is none.
bool has_checkpoint(const RunFolder& folder) {
  return !list_checkpoints(folder.checkpoints()).empty();
}

// The run of a call that was killed is still saving.
void wait_for_earlier_run(const ProveContext& context, const RunFolder& folder) {
  while (std::filesystem::exists(folder.lock()) && RunLock::holder(folder.lock()) && !context.is_over()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// What the run has taken so far.
struct RunEffort {
  double seconds = 0;
  std::int64_t processes = 0;
};

// Of the processes whose run is resumed: by the run's own ledger, which also has those of a call that was killed.
RunEffort effort_before(const RunFolder& folder) {
  const Json attempts = attempts_before(folder, 0);
  return {seconds_of(attempts), std::max<std::int64_t>(1, static_cast<std::int64_t>(attempts.size()))};
}

PartResult judged(const ProveContext& context, const RunFolder& folder, const RunEffort& effort) {
  PartResult result;
  result.name = "dreambooth";
  const std::vector<Json> validations = read_json_lines(folder.validation()), steps = read_json_lines(folder.metrics());
  double before = std::numeric_limits<double>::quiet_NaN(), after = before;
  for (const Json& line : validations) {
    if (!line.contains("loss") || !line.at("loss").is_number()) continue;
    if (line.value("step", -1) == 0) before = line.at("loss").get<double>();
    after = line.at("loss").get<double>();
  }
  for (const Json& line : steps) {
    result.peak_bytes = std::max(result.peak_bytes, line.value("max_memory_bytes", std::int64_t{0}));
  }
  result.checks = {
      {"loss on the photos, after / before",
       after / before,
       {},
       0.97,
       "the same noise and timesteps at both times, so that nothing but the weights differs"},
      {"steps", steps.empty() ? 0 : steps.back().value("step", 0.0), static_cast<double>(context.steps), {}, ""}};
  result.numbers = {
      {"loss_before", before}, {"loss_after", after}, {"run_seconds", effort.seconds}, {"processes", effort.processes}};
  std::error_code absent;
  std::vector<std::string> grids;
  for (const auto& entry : std::filesystem::directory_iterator(folder.samples(), absent)) {
    const std::filesystem::path grid = entry.path() / "grid.png";
    if (is_file(grid)) grids.push_back(std::filesystem::relative(grid, context.store.root()).string());
  }
  std::sort(grids.begin(), grids.end());
  if (!grids.empty()) result.images = {grids.back()};  // with the base above it
  result.judge();
  return result;
}

}  // namespace

PartResult dreambooth_part(const ProveContext& context) {
  const std::string part = "dreambooth";
  const TrainConfig config = dreambooth_config(context);
  const RunFolder folder = run_folder(config);
  const std::filesystem::path file = context.write_config(part, config);
  wait_for_earlier_run(context, folder);
  while (true) {
    const bool resumes = has_checkpoint(folder);
    RunEffort effort = resumes ? effort_before(folder) : RunEffort();
    Child child;
    child.words = {context.program.string(), "train", "--config", file.string()};
    const std::vector<std::string> more = resumes ? std::vector<std::string>{"--resume-from-checkpoint", "latest"}
                                                  : std::vector<std::string>{"--overwrite"};
    child.words.insert(child.words.end(), more.begin(), more.end());
    child.log = context.work("dreambooth.log");
    const ChildrenEnd end = run_children({child}, context.limit(), context.stop);
    effort.seconds += end.seconds;
    ++effort.processes;
    if (end.all_done()) return judged(context, folder, effort);
    // The limit of one process: it has saved its state, and the next one continues.
    if (end.out_of_time && !context.is_over() && has_checkpoint(folder)) continue;
    return ended_badly(context, part, end, {child});
  }
}

}  // namespace sdtune::train
