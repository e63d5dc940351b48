// What a run writes that is large, before there is a run.
#pragma once

#include <cstdint>

#include "model/pipeline/bundle.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// Bytes, never less than what is written but for a few KiB: state.json and LoRA's metadata grow with the photos.
struct WrittenBytes {
  std::int64_t checkpoint = 0;  // each of them
  std::int64_t best = 0;        // the best weights so far, and better ones that replace them; 0: none are kept
  std::int64_t model = 0;       // in place of which an older one stays until it is whole
};

// Of a run with these options that starts from `base`. The weights are not read: model::empty_bundle will do. Throws
// ConfigError for layers that the base does not have.
WrittenBytes written_bytes(const TrainConfig& config, const model::ModelBundle& base);

}  // namespace sdtune::train
