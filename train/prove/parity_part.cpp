#include "model/files/json_file.h"
#include "train/prove/parts.h"
#include "train/prove/step_record.h"

namespace sdtune::train {

std::optional<PartResult> ensure_steps(const ProveContext& context, const std::string& part, const std::string& name,
                                       const std::filesystem::path& config) {
  if (has_record(context.work(name))) return std::nullopt;
  const std::vector<Child> children = {context.piece("steps", name, config, {"--record", context.work(name).string()})};
  const ChildrenEnd end = run_children(children, context.limit(), context.stop);
  if (end.all_done()) return std::nullopt;
  return ended_badly(context, part, end, children, /*may_skip=*/true);
}

PartResult parity_part(const ProveContext& context, const std::string& part, const std::string& mixed_precision) {
  if (!context.is_cuda && mixed_precision == "fp16") return skipped_part(part, "a CPU does not train in fp16");
  const std::string name = "steps_" + mixed_precision;
  const std::filesystem::path config = context.write_config(name, step_config(context, mixed_precision, name));
  if (std::optional<PartResult> fault = ensure_steps(context, part, name, config)) return *fault;
  const std::filesystem::path result_file = context.work(name + "_checks.json");
  const std::vector<Child> children = {
      context.piece("reference", name + "_reference", config,
                    {"--record", context.work(name).string(), "--result", result_file.string()})};
  const ChildrenEnd end = run_children(children, context.limit(), context.stop);
  if (!end.all_done()) return ended_badly(context, part, end, children, /*may_skip=*/true);
  PartResult result;
  result.name = part;
  result.checks = checks_from_json(read_json(result_file), result_file.string());
  result.numbers = read_record(context.work(name)).facts;
  result.peak_bytes = result.numbers.value("peak_bytes", std::int64_t{0});
  result.judge();
  return result;
}

}  // namespace sdtune::train
