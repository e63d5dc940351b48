#include "model/files/json_file.h"
#include "train/prove/parts.h"

namespace sdtune::train {

PartResult kernels_part(const ProveContext& context) {
  const std::string name = "kernels";
  const std::filesystem::path result_file = context.work("kernels_checks.json");
  const std::vector<Child> children = {
      context.piece("kernels", name, context.write_config(name, context.config), {"--result", result_file.string()})};
  const ChildrenEnd end = run_children(children, context.limit(), context.stop);
  if (!end.all_done()) return ended_badly(context, name, end, children);
  PartResult result;
  result.name = name;
  result.checks = checks_from_json(read_json(result_file), result_file.string());
  result.judge();
  if (result.status == PartStatus::kFailed) {
    const std::string words = last_words(children.front().log);
    if (!words.empty()) result.reason += ": " + words;
  }
  return result;
}

}  // namespace sdtune::train
