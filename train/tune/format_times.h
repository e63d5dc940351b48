// How long this CPU takes in each number format, for the table of processors: real images and real steps of training.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/identity/portrait_reader_source.h"

namespace sdtune::train {

struct FormatTimes {
  std::string dtype;         // float32, bfloat16
  double image_seconds = 0;  // one image, words to pixels; median of the rounds
  double step_seconds = 0;   // one optimizer step; median of the rounds, each the median of its steps
};

struct TimingPlan {
  TrainConfig config;               // base, photos and how they are trained on; its output is written anew each time
  int rounds = 3;                   // in each the formats take turns
  std::int64_t steps = 6;           // optimizer steps of a round; the first two are not counted
  std::int64_t sampling_steps = 8;  // of an image
  std::function<void(const std::string&)> on_line;  // what is timed next, in words
};

// Of each format that a CPU computes in. Needs memory for the base once in each format and for a training. Empty when
// `stop` ended it. Throws as train() and as loading the base.
std::vector<FormatTimes> time_formats(const TimingPlan& plan, const PortraitReaderSource& readers, StopFlag& stop);

// The format with the shortest time; float32 where another one gains less than `least_gain` of the time, since it
// rounds less.
std::string fastest_format(const std::vector<FormatTimes>& times, double FormatTimes::*seconds, double least_gain);

}  // namespace sdtune::train
