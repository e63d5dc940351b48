// What tune-machine times: real images and real steps of training, on this CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "model/generate/image_generator.h"
#include "model/pipeline/bundle.h"
#include "train/config/train_config.h"
#include "train/identity/portrait_reader_source.h"

namespace sdtune::train {

struct TimingPlan {
  TrainConfig config;               // base, photos and how they are trained on; its output is written anew each time
  int rounds = 3;                   // in each, what is compared takes turns
  std::int64_t steps = 6;           // optimizer steps of a round; the first two are not counted
  std::int64_t sampling_steps = 8;  // of an image
  std::function<void(const std::string&)> on_line;  // what is timed next, in words
};

// Of at least one value.
double median(std::vector<double> values);

// Seconds of one optimizer step in a number format, the median of a short training; unset when `stop` ended it. Throws
// as train().
std::optional<double> time_step(const TimingPlan& plan, const std::string& format, const PortraitReaderSource& readers,
                                StopFlag& stop);

// Generates one image again and again, words to pixels, with the base loaded once in a number format. Throws as loading
// the base.
class ImageClock {
 public:
  ImageClock(const TimingPlan& plan, const std::string& format);
  double time_one();  // s

 private:
  void generate();

  model::ModelBundle bundle_;
  model::ImageGenerator generator_;
  model::GenerateOptions options_;
};

}  // namespace sdtune::train
