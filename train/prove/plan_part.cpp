#include "model/files/json_file.h"
#include "train/plan/memory_plan.h"
#include "train/prove/parts.h"

namespace sdtune::train {

namespace {

// What the plan says of the highest phase. On a GPU without the driver's own memory, which LibTorch's allocator does
// not count.
double planned_bytes(const Json& plan, bool on_gpu) {
  const Json& memory = plan.at(on_gpu ? "gpu" : "cpu");
  double bytes = memory.at("peak_bytes").get<double>();
  if (!on_gpu) return bytes;
  for (const Json& phase : memory.at("phases")) {
    if (phase.at("name") != memory.at("peak_phase")) continue;
    for (const Json& part : phase.at("parts")) {
      if (part.at("name") == program_on_gpu().name) bytes -= part.at("bytes").get<double>();
    }
  }
  return bytes;
}

}  // namespace

PartResult plan_part(const ProveContext& context) {
  const std::string part = "plan";
  const std::optional<PartResult> run = context.store.find("dreambooth");
  if (!run || run->peak_bytes == 0) return skipped_part(part, "the part dreambooth has not been done");
  const std::filesystem::path json = context.work("plan.json");
  Child child;
  child.words = {context.program.string(),
                 "plan",
                 "--config",
                 context.write_config("plan", dreambooth_config(context)).string(),
                 "--probe",
                 "--json",
                 "--savings=false"};
  child.log = context.work("plan.log");
  child.output = json;
  const ChildrenEnd end = run_children({child}, context.limit(), context.stop);
  if (!end.all_done()) return ended_badly(context, part, end, {child});
  const Json plan = read_json(json);
  const double factor = context.fault == "plan" ? 0.1 : 1;
  const double bytes = factor * planned_bytes(plan, context.is_cuda);
  const double seconds = factor * plan.at("this_machine").at("total_s").get<double>();
  const double run_seconds = run->numbers.at("run_seconds").get<double>();
  PartResult result;
  result.name = part;
  result.checks = {{"peak memory of the run / planned", static_cast<double>(run->peak_bytes) / bytes, 0.5, 1.15,
                    "a card that the plan says suffices must suffice; what it asks for in vain is money"}};
  const bool is_resumed = run->numbers.value("processes", 1) > 1;
  Check time{"time of the run / planned", run_seconds / seconds, 1.0 / 3, 3,
             "the plan times a few steps, and machines have neighbours"};
  if (is_resumed) time = {time.name, time.value, {}, {}, "no bar: the run was interrupted and loaded its model again"};
  result.checks.push_back(time);
  result.numbers = {{"planned_bytes", bytes},
                    {"run_bytes", run->peak_bytes},
                    {"planned_seconds", seconds},
                    {"run_seconds", run_seconds}};
  result.judge();
  return result;
}

}  // namespace sdtune::train
