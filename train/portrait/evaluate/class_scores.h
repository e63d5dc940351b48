// D, leak and Q: what the tuning did to images of the class.
#pragma once

#include <torch/types.h>

#include "train/portrait/evaluate/subject_scores.h"

namespace sdtune::train::evaluate {

// Bits: the entropies of hair style, hair colour, facial hair and skin tone (in fourths) among the images, added. Not
// the entropy of their combinations, which a hundred images cannot fill.
double diversity(const classifier::Reading& reading, const torch::Tensor& rows);

// Images of "a photo of a person", and of all prompts with "a person".
struct ClassReading {
  classifier::Reading plain;
  PromptedReading prompted;
};

// All figures from kClassFidelity to kFrechetDistance, the last to `renders` of other people in contexts of the plain
// prompt.
Scores score_class(const Subject& subject, const ClassReading& images, const classifier::Reading& renders,
                   const Anchors& anchors);

}  // namespace sdtune::train::evaluate
