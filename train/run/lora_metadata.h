// What A1111-style programs and kohya's tools show of a LoRA and sort it by.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/run/run.h"

namespace sdtune::train {

// The header's metadata of the file with kohya's names, in kohya's keys (ss_*, github.com/kohya-ss/sd-scripts,
// train_network.py) and Stability's (modelspec.*): base, architecture, rank and alpha, photos, captions' tags and how
// often each comes, options of the training, trigger words. All texts. No time and no path stands in it, so that equal
// runs give equal files. `trigger` may be empty; the weights are those of `step`, which may be before the last one. The
// hashes are write_lora's.
std::map<std::string, std::string> lora_metadata(const Run& run, const std::string& title, const std::string& trigger,
                                                 std::int64_t step);

}  // namespace sdtune::train
