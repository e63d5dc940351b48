// D, leak and Q: what the tuning did to pictures of the class.
#pragma once

#include <torch/types.h>

#include "train/evaluate/subject_scores.h"

namespace sdtune::train::evaluate {

// Bits: the entropies of hair style, hair colour, facial hair and skin tone (in fourths) among the pictures, added. Not
// the entropy of their combinations, which a hundred pictures cannot fill.
double diversity(const judge::Reading& reading, const torch::Tensor& rows);

// Pictures of "a photo of a person", and of all prompts with "a person".
struct ClassReading {
  judge::Reading plain;
  PromptedReading prompted;
};

// All figures from kClassFidelity to kFrechetDistance, the last to `renders` of other people in contexts of the plain
// prompt.
Scores score_class(const Subject& subject, const ClassReading& pictures, const judge::Reading& renders,
                   const Anchors& anchors);

}  // namespace sdtune::train::evaluate
