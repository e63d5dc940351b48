// Measures a judge on people it never saw.
#pragma once

#include <cstdint>

#include "train/judge/augmentation.h"
#include "train/judge/judge.h"

namespace sdtune::train::judge {

struct MeasurementOptions {
  std::int64_t people = 300;  // of the validation set
  std::int64_t views = 8;
  std::int64_t references = 5;  // of the views; the others are the new pictures
  int threads = 1;              // of the renderer
  Reconstruct reconstruct;      // given: every picture goes through the VAE first
};

// Renders people x views pictures, and reads them. Call contract: people >= 2, 2 <= references < views.
JudgeFigures measure_judge(Judge& judge, const MeasurementOptions& options);

}  // namespace sdtune::train::judge
