// What the model card of the base says of it: the autoencoder on pictures it never saw, what the judge still reads
// behind it, and how well prompts are followed.
#pragma once

#include <cstdint>

#include "model/base/json.h"
#include "model/pipeline/bundle.h"
#include "train/judge/judge.h"
#include "train/judge/judge_measurement.h"
#include "train/pretrain/prompt_curve.h"

namespace sdtune::train::pretrain {

struct FigureOptions {
  std::int64_t renders = 512;         // for the autoencoder's error
  std::int64_t prompts = 512;         // a picture each
  judge::MeasurementOptions judging;  // of the judge, on renders and behind the autoencoder
  PromptDrawing drawing{30, 7.5};     // as `sample` draws unless told
};

// {"vae": {psnr_db, pictures}, "judge": {renders, reconstructions: accuracy by head}, "prompts": {pictures, steps,
// guidance_scale, mean, heads: share by head, classes: asked, right and share by head and class}}.
Json measure_base(model::ModelBundle& bundle, judge::Judge& judge, const FigureOptions& options);

}  // namespace sdtune::train::pretrain
