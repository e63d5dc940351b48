#include "train/run/agree_on_format.h"

#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/precision/mixed_precision.h"

namespace sdtune::train {

void agree_on_format(ProcessGroup& group, const TrainConfig& config, torch::Device device, const ResumePoint& resume) {
  if (group.world_size() == 1) return;
  const std::string own =
      resolve_mixed_precision(config.precision.mixed_precision, device, recorded_value(resume, "mixed_precision"));
  const std::vector<std::string> formats = group.gather_text(own);
  for (std::size_t rank = 1; rank < formats.size(); ++rank) {
    if (formats[rank] == formats[0]) continue;
    group.barrier();  // no rank ends before all have read it
    throw ConfigError("mixed_precision",
                      config.precision.mixed_precision + " is " + formats[0] + " on rank 0 and " + formats[rank] +
                          " on rank " + std::to_string(rank) + ", whose processors or GPUs are of other kinds",
                      "name a format for all: no, bf16 or fp16");
  }
}

}  // namespace sdtune::train
