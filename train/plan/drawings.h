// Which pictures a run has its model draw, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/train_config.h"

namespace sdtune::train {

struct Drawing {
  std::string phase;         // "drawing class pictures"
  bool in_training = false;  // beside everything that training keeps; else the model is all there is
  bool with_base = false;    // and beside the base, loaded again
  std::int64_t at_once = 0;  // pictures
  std::int64_t rows = 0;     // of one call of the UNet: two for each guided picture
  std::int64_t steps = 0;    // of the sampler
};

// Class pictures, validation pictures, looks at likeness: those that the configuration asks for, in this order.
std::vector<Drawing> drawings_of(const TrainConfig& config);

// How many such pictures the whole run draws. `class_images`: those of prior preservation, all of them.
std::int64_t count_drawn(const Drawing& drawing, const TrainConfig& config, std::int64_t class_images,
                         std::int64_t total_steps);

}  // namespace sdtune::train
