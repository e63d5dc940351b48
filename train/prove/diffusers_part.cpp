#include <algorithm>

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/files/json_file.h"
#include "train/config/run_folder.h"
#include "train/prove/json_lines.h"
#include "train/prove/parts.h"
#include "train/prove/record_comparison.h"
#include "train/prove/step_record.h"
#include "train/track/python_interpreter.h"

namespace sdtune::train {

namespace {

constexpr const char* kScript = "scripts/prove/diffusers_side.py";
constexpr std::int64_t kTimedSteps = 20, kWarmUp = 5;

class DiffusersSide {
 public:
  DiffusersSide(const ProveContext& context) : context_(context), python_(find_python(context.program)) {}

  // Why diffusers cannot be asked; "" where it can.
  std::string fault() {
    if (find_shared_file(kScript).empty()) return std::string("this installation lacks ") + kScript;
    if (python_.empty()) return "there is no python3 (SDTUNE_PYTHON names one)";
    const Child child = script("diffusers_check", {"check"});
    if (run_children({child}, context_.limit(), context_.stop).all_done()) return "";
    return python_.string() + " has no torch with diffusers (" + last_words(child.log) +
           "); SDTUNE_PYTHON names another Python";
  }

  Child script(const std::string& log, const std::vector<std::string>& words) const {
    Child child;
    child.words = {python_.string(), find_shared_file(kScript).string()};
    child.words.insert(child.words.end(), words.begin(), words.end());
    child.words.insert(child.words.end(), {"--base", context_.config.run.base});
    child.log = context_.work(log + ".log");
    return child;
  }

 private:
  const ProveContext& context_;
  std::filesystem::path python_;
};

// What comparison was left out for want of memory, as the part's reason; anything else ends the part.
std::optional<PartResult> leave_out(PartResult end, const std::string& what, PartResult& result) {
  if (end.status != PartStatus::kSkipped) return end;
  result.reason += (result.reason.empty() ? "" : "; ") + what + " left out: " + end.reason;
  return std::nullopt;
}

// Diffusers' UNet and torch.optim.AdamW in float32 on the inputs of a record.
std::optional<PartResult> add_parity(const ProveContext& context, const DiffusersSide& side,
                                     const std::string& mixed_precision, PartResult& result) {
  const std::string name = "steps_" + mixed_precision;
  if (!has_record(context.work(name))) return std::nullopt;  // the part of its parity says why
  const std::string theirs = "diffusers_" + mixed_precision;
  const StepRecord record = read_record(context.work(name));
  if (!has_record(context.work(theirs))) {
    const OptimOptions optim = step_config(context, mixed_precision, name).optim;
    const std::vector<Child> children = {side.script(
        theirs, {"steps", "--record", context.work(name).string(), "--output", context.work(theirs).string(),
                 "--device", context.device, "--rate", std::to_string(optim.learning_rate), "--max-grad-norm",
                 std::to_string(optim.max_grad_norm), "--weight-decay", std::to_string(optim.adam_weight_decay)})};
    const ChildrenEnd end = run_children(children, context.limit(), context.stop);
    if (!end.all_done()) {
      return leave_out(ended_badly(context, result.name, end, children, /*may_skip=*/true),
                       "steps in " + mixed_precision, result);
    }
  }
  const auto dtype = record.facts.at("dtype").get<std::string>();
  for (Check check : compare_records(record, read_record(context.work(theirs)), dtype)) {
    check.name = dtype + " against diffusers in float32: " + check.name;
    result.checks.push_back(std::move(check));
  }
  return std::nullopt;
}

TrainConfig timed_config(const ProveContext& context) {
  TrainConfig config = step_config(context, "auto", "timed");
  config.run.train_batch_size = 1;
  config.run.micro_batch = "1";
  config.run.gradient_checkpointing = false;
  config.run.max_train_steps = kWarmUp + kTimedSteps;
  config.run.overwrite = true;
  config.checkpoint.checkpointing_steps = kWarmUp + kTimedSteps + 1;
  return config;
}

// Ours: the median of a step's seconds, and the peak.
Json our_step(const RunFolder& folder) {
  std::vector<double> seconds;
  double peak = 0;
  for (const Json& line : read_json_lines(folder.metrics())) {
    peak = std::max(peak, line.value("max_memory_bytes", 0.0));
    const double pace = line.value("images_per_s", 0.0);
    if (line.value("step", 0) > kWarmUp && pace > 0) seconds.push_back(1 / pace);
  }
  if (seconds.empty()) throw StorageError(folder.metrics().string(), "holds no timed steps");
  std::sort(seconds.begin(), seconds.end());
  return {{"seconds_a_step", seconds[seconds.size() / 2]}, {"peak_bytes", peak}};
}

// Without recomputation on either side, as diffusers' script has it.
std::optional<PartResult> add_times(const ProveContext& context, const DiffusersSide& side, PartResult& result) {
  const TrainConfig config = timed_config(context);
  const RunFolder folder = run_folder(config);
  Child ours;
  ours.words = {context.program.string(), "train", "--config", context.write_config("timed", config).string()};
  ours.log = context.work("timed.log");
  ChildrenEnd end = run_children({ours}, context.limit(), context.stop);
  const std::string what = "time and memory";
  if (!end.all_done()) {
    return leave_out(ended_badly(context, result.name, end, {ours}, /*may_skip=*/true), what, result);
  }
  const auto dtype = read_json(folder.record()).at("dtype").get<std::string>();
  const std::filesystem::path file = context.work("diffusers_time.json");
  const std::vector<Child> theirs = {
      side.script("diffusers_time", {"time", "--output", file.string(), "--device", context.device, "--dtype", dtype,
                                     "--resolution", std::to_string(config.data.resolution.value_or(0)), "--steps",
                                     std::to_string(kTimedSteps), "--warm-up", std::to_string(kWarmUp)})};
  end = run_children(theirs, context.limit(), context.stop);
  if (!end.all_done()) {
    return leave_out(ended_badly(context, result.name, end, theirs, /*may_skip=*/true), what, result);
  }
  const Json our = our_step(folder), their = read_json(file);
  const auto ratio = [&](const char* key) { return our.at(key).get<double>() / their.at(key).get<double>(); };
  result.checks.push_back(
      {"time of a step / diffusers'",
       ratio("seconds_a_step"),
       {},
       1.1,
       "batch 1, cached latents and embeddings on both sides; 10 % for what differs from run to run"});
  result.checks.push_back({"peak memory / diffusers'", ratio("peak_bytes"), {}, 1.1, "as for the time"});
  result.numbers["sdtune"] = our;
  result.numbers["diffusers"] = their;
  return std::nullopt;
}

}  // namespace

PartResult diffusers_part(const ProveContext& context) {
  PartResult result;
  result.name = "diffusers";
  DiffusersSide side(context);
  if (const std::string fault = side.fault(); !fault.empty()) return skipped_part(result.name, fault);
  const TrainConfig config = step_config(context, "no", "steps_no");
  if (std::optional<PartResult> bad =
          ensure_steps(context, result.name, "steps_no", context.write_config("steps_no", config))) {
    return *bad;
  }
  for (const char* precision : {"no", "bf16", "fp16"}) {
    if (std::optional<PartResult> bad = add_parity(context, side, precision, result)) return *bad;
  }
  if (std::optional<PartResult> bad = add_times(context, side, result)) return *bad;
  if (result.checks.empty()) return skipped_part(result.name, result.reason);
  result.judge();
  return result;
}

}  // namespace sdtune::train
