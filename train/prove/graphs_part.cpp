#include "train/prove/parts.h"
#include "train/prove/record_comparison.h"
#include "train/prove/step_record.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kSteps = 12;  // a few before the shape is captured, and enough to be timed after
constexpr double kMostDifference = 1e-3;

Check difference_of(const StepRecord& graphed, const StepRecord& eager, const std::string& name, const char* what) {
  const torch::Tensor *got = graphed.find(name), *want = eager.find(name);
  TORCH_CHECK(got != nullptr && want != nullptr, "graphs_part: a record has no ", name);
  return {what, relative_difference(*got, *want), {}, kMostDifference, "a graph holds the kernels of the eager step"};
}

}  // namespace

PartResult graphs_part(const ProveContext& context) {
  const std::string part = "graphs";
  if (!context.is_cuda) return skipped_part(part, "CUDA graphs need a GPU");
  ProveContext longer = context;
  longer.recorded_steps = kSteps;
  std::vector<StepRecord> records;
  for (const bool graphs : {false, true}) {
    const std::string name = graphs ? "graphs_on" : "graphs_off";
    TrainConfig config = step_config(longer, "default", name);
    config.run.cuda_graphs = graphs;
    config.run.micro_batch = "2";
    config.run.gradient_checkpointing = context.config.run.gradient_checkpointing;
    const std::filesystem::path file = context.write_config(name, config);
    if (std::optional<PartResult> fault = ensure_steps(longer, part, name, file)) return *fault;
    records.push_back(read_record(context.work(name)));
  }
  const StepRecord &eager = records.front(), &graphed = records.back();
  PartResult result;
  result.name = part;
  result.checks = {difference_of(graphed, eager, "losses", "losses, replayed and eager"),
                   difference_of(graphed, eager, "norms", "gradient norms, replayed and eager"),
                   {"steps replayed", graphed.facts.at("replayed").get<double>(), 1, {}, "else nothing is proved"}};
  result.numbers = {{"eager", eager.facts}, {"graphed", graphed.facts}};
  result.numbers["eager / graphed"] =
      eager.facts.at("seconds_a_step").get<double>() / graphed.facts.at("seconds_a_step").get<double>();
  result.peak_bytes = graphed.facts.at("peak_bytes").get<std::int64_t>();
  result.judge();
  return result;
}

}  // namespace sdtune::train
