#include "model/machine/compute_dtype.h"

#include "model/core/cpu_implementation.h"
#include "model/core/device.h"
#include "model/machine/processor_table.h"

namespace sdtune::model {

torch::Dtype choose_dtype(const std::string& asked, torch::Device device, ComputeUse use, const std::string& where) {
  if (device.is_cpu()) cpu_implementation();  // a table that cannot be read is said before anything is loaded
  if (asked != "default" && asked != "auto") return parse_dtype(asked, where);
  if (asked == "default" || !device.is_cpu()) return default_dtype(device);
  const auto formats = find_processor(processor_kind());
  if (!formats) return default_dtype(device);
  return parse_dtype(use == ComputeUse::kSample ? formats->sample : formats->train, where);
}

std::string unknown_processor_note(const std::string& asked, torch::Device device) {
  if (asked != "auto" || !device.is_cpu()) return "";
  const ProcessorKind kind = processor_kind();
  if (find_processor(kind)) return "";
  return "no table says what " + kind_text(kind) +
         " is fastest in, so auto is float32: `sdtune tune-machine` measures it";
}

}  // namespace sdtune::model
