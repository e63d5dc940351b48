// What the model card of the base says of it: the autoencoder on images it never saw, what the classifier still reads
// behind it, and how well prompts are followed.
#pragma once

#include <cstdint>

#include "model/base/json.h"
#include "model/generate/generate_options.h"
#include "model/pipeline/bundle.h"
#include "train/portrait/classifier/classifier_measurement.h"
#include "train/portrait/classifier/portrait_classifier.h"
#include "train/portrait/pretrain/prompt_curve.h"

namespace sdtune::train::pretrain {

struct FigureOptions {
  std::int64_t renders = 512;                  // for the autoencoder's error
  std::int64_t prompts = 512;                  // an image each
  classifier::MeasurementOptions measurement;  // of the classifier, on renders and behind the autoencoder
  PromptGeneration generation{30, model::default_guidance_scale(false)};  // the defaults of `sample`
};

// {"vae": {psnr_db, images}, "classifier": {renders, reconstructions: accuracy by head}, "prompts": {images, steps,
// guidance_scale, mean, heads: share by head, classes: asked, right and share by head and class}}.
Json measure_base(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier, const FigureOptions& options);

}  // namespace sdtune::train::pretrain
