// Pictures drawn by a Stable Diffusion model, as the judge takes them.
#pragma once

#include <atomic>
#include <cstdint>

#include "model/pipeline/bundle.h"
#include "train/evaluate/evaluation.h"

namespace sdtune::train::evaluate {

struct DrawingOptions {
  std::int64_t steps = 30;
  double guidance_scale = 7.5;
  const std::atomic<bool>* stop = nullptr;  // looked at between two steps
};

// Draws with the bundle's own scheduler at its own size; larger pictures are scaled down, antialiased. Undefined where
// `stop` asked for it. The bundle must outlive the result.
DrawPictures pictures_of(model::ModelBundle& bundle, const DrawingOptions& options);

}  // namespace sdtune::train::evaluate
