// How long this CPU takes in each number format, for the table of processors: real images and real steps of training.
#pragma once

#include <string>
#include <vector>

#include "train/tune/timed_work.h"

namespace sdtune::train {

struct FormatTimes {
  std::string dtype;         // float32, bfloat16
  double image_seconds = 0;  // one image, words to pixels; median of the rounds
  double step_seconds = 0;   // one optimizer step; median of the rounds, each the median of its steps
};

// Of each format that a CPU computes in. Needs memory for the base once in each format and for a training. Empty when
// `stop` ended it. Throws as train() and as loading the base.
std::vector<FormatTimes> time_formats(const TimingPlan& plan, const PortraitReaderSource& readers, StopFlag& stop);

// The format with the shortest time; float32 where another one gains less than `least_gain` of the time, since it
// rounds less.
std::string fastest_format(const std::vector<FormatTimes>& times, double FormatTimes::*seconds, double least_gain);

}  // namespace sdtune::train
