// Which implementations of operators are fastest on this CPU, for the table of processors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "train/tune/timed_work.h"

namespace sdtune::train {

// The other value of a choice, beside what was the fastest until then.
struct ImplementationTimes {
  std::string choice, value;  // attention, library
  double image_ratio = 1;     // its time of an image over that of the fastest; medians of the rounds
  double step_ratio = 1;      // the same of an optimizer step
  bool is_taken = false;
};

struct TunedImplementation {
  model::CpuImplementation fastest;
  std::vector<ImplementationTimes> tried;
};

// Number formats of the two uses: those that `auto` will mean.
struct TunedFormats {
  std::string sample, train;
};

// Whether the choice is one of bfloat16 alone, and both formats are float32: its other value would compute the same.
bool is_of_no_format(const model::CpuChoice& choice, const TunedFormats& formats);

// Whether images and steps together, by the geometric mean, gain at least `least_gain` of the time.
bool is_faster(double image_ratio, double step_ratio, double least_gain);

// Beginning with the default, the other value of each choice of these formats in turn: taken where it is faster, and
// kept for the choices behind it. Unset when `stop` ended it. Throws as time_step and ImageClock.
std::optional<TunedImplementation> choose_implementation(const TimingPlan& plan, const TunedFormats& formats,
                                                         double least_gain, const PortraitReaderSource& readers,
                                                         StopFlag& stop);

}  // namespace sdtune::train
