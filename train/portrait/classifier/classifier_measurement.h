// Measures a classifier on people it never saw.
#pragma once

#include <cstdint>

#include "train/portrait/classifier/augmentation.h"
#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::classifier {

struct MeasurementOptions {
  std::int64_t people = 300;  // of the validation set
  std::int64_t views = 8;
  std::int64_t references = 5;  // of the views; the others are the new images
  int threads = 1;              // of the renderer
  Reconstruct reconstruct;      // given: every image goes through the VAE first
};

// Renders people x views images, and reads them. Call contract: people >= 2, 2 <= references < views.
ClassifierFigures measure_classifier(PortraitClassifier& classifier, const MeasurementOptions& options);

}  // namespace sdtune::train::classifier
