// Pictures drawn by a Stable Diffusion model, as the judge takes them.
#pragma once

#include <atomic>
#include <cstdint>

#include "model/pipeline/bundle.h"
#include "train/evaluate/evaluation.h"

namespace sdtune::train::evaluate {

inline constexpr std::int64_t kOwnSide = 0;

struct DrawingOptions {
  std::int64_t steps = 30;
  double guidance_scale = 7.5;
  const std::atomic<bool>* stop = nullptr;  // looked at between two steps
  std::int64_t side = judge::kJudgeSize;    // px of the result; kOwnSide: as the model draws them
};

// Draws with the bundle's own scheduler at its own size; pictures of another side than asked for are scaled,
// antialiased. Undefined where `stop` asked for it. The bundle must outlive the result.
DrawPictures pictures_of(model::ModelBundle& bundle, const DrawingOptions& options);

}  // namespace sdtune::train::evaluate
