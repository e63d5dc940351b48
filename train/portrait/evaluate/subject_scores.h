// P, S, A and C: what images that should show the subject do show.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <vector>

#include "train/portrait/evaluate/eval_prompts.h"
#include "train/portrait/evaluate/scores.h"
#include "train/portrait/evaluate/subject.h"

namespace sdtune::train::evaluate {

// Images and the prompt of each, as the classifier reads them.
struct PromptedReading {
  classifier::Reading reading;       // N rows
  std::vector<std::size_t> prompts;  // [N] of eval_prompts()
  torch::Tensor face_energy;         // [N, bands] of face_gradient_energy; undefined: not measured
};

// What 0 and 1 mean for one subject: measured on renders in the contexts of the same prompts.
struct Anchors {
  double other = 0;           // mean likeness of other people to the references
  double subject = 0;         // mean likeness of new renders of the subject
  double copy_threshold = 0;  // feature likeness to the nearest reference that 1 % of those renders reach
  double accepted_from = 0;   // likeness from which an image passes: 1 % of impostors do (classifier.json)
  torch::Tensor face_energy;  // [bands], the mean over those renders; undefined: not measured
};

// Throws WeightError where the two are not apart: a classifier that cannot tell the subject from other people can
// measure nothing.
Anchors measure_anchors(const Subject& subject, const PromptedReading& renders, const classifier::Reading& others,
                        double accepted_from);

// The likeness of each image to the mean of the references: [N].
torch::Tensor likeness_to(const Subject& subject, const classifier::Reading& reading);

// P: the share of all that was asked, over all images; its count are the images that were asked anything. Its interval
// holds however the answers of one image depend on each other.
Estimate prompt_fidelity(const PromptedReading& images);

// All figures from kPromptFidelity to kRepeatedContext: those of marks and hair that the subject has, and sharpness
// where the anchors have it and faces are seen.
Scores score_subject(const Subject& subject, const PromptedReading& images, const Anchors& anchors);

}  // namespace sdtune::train::evaluate
