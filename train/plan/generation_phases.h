// Which images a run generates, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/train_config.h"

namespace sdtune::train {

struct Generation {
  std::string phase;         // "generating class images"
  bool in_training = false;  // beside everything that training keeps; else the model is all there is
  bool with_base = false;    // and beside the base, loaded again
  std::int64_t at_once = 0;  // images
  std::int64_t rows = 0;     // of one call of the UNet: two for each guided image
  std::int64_t steps = 0;    // of the sampler
};

// Class images, validation images, images of identity evaluations: those that the configuration asks for, in this
// order.
std::vector<Generation> generations_of(const TrainConfig& config);

// How many such images the whole run generates. `class_images`: those of prior preservation that it generates.
std::int64_t count_generated(const Generation& generation, const TrainConfig& config, std::int64_t class_images,
                             std::int64_t total_steps);

}  // namespace sdtune::train
