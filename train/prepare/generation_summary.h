// What a run will generate, in words, before it generates anything.
#pragma once

#include <string>
#include <vector>

#include "train/config/train_config.h"

namespace sdtune::train {

// A line each for class images, validation images and identity evaluation, of those that the configuration asks for:
// "200 class images of 50 steps, before training; those found in class_data_dir are not generated again".
// Throws ConfigError for bad `concepts`.
std::vector<std::string> generation_summary(const TrainConfig& config);

}  // namespace sdtune::train
