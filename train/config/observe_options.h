// The options of what is seen while a run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_option_group.h"

namespace sdtune::train {

struct ObserveOptions {
  std::string validation_prompt;    // empty: no validation images
  std::string validation_data_dir;  // photos that are not trained on; empty: no validation loss
  std::string validation_negative_prompt;
  std::int64_t num_validation_images = 4;
  std::int64_t validation_steps = 100;              // optimizer steps between two validations
  std::int64_t validation_inference_steps = 25;     // of the sampler
  std::optional<double> validation_guidance_scale;  // unset: the default of the pipeline
  std::vector<std::string> report_to = {"tensorboard"};
  bool report_model = false;             // the result as an artifact of the trackers
  std::string tracker_project_name;      // empty: the tracker's own environment variable, else sdtune
  std::string tracker_run_name;          // empty: the name of the run folder
  double tracker_timeout = 120;          // s that the end of the run waits for them
  std::optional<double> price_per_hour;  // of the machine, for report.html and max_cost
  std::int64_t report_images = 4;        // of base and model each, at the end of the run; 0: none
  std::int64_t profile = 0;              // optimizer steps that are profiled; 0: none

  TrainFieldList fields();
};

// What contradicts itself in them.
std::vector<Problem> observe_problems(const ObserveOptions& options);

}  // namespace sdtune::train
