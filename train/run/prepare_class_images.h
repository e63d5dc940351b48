// The class pictures of prior preservation, of every subject: found, or drawn by the base.
#pragma once

#include <cstdint>
#include <vector>

#include "train/data/concept_options.h"
#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

// Draws what is missing, each rank its share, and returns all in the order of the subjects. Subjects with the same
// class_prompt and class_data_dir share their pictures: as many as the one that wants most. Where subjects with
// different prompts share a folder, each further prompt has a subfolder of its own, named by a number. Empty without
// with_prior_preservation. Throws what class_images.h throws, and StopRequest.
std::vector<ClassPicture> prepare_class_images(Run& run, const std::vector<ConceptOptions>& concepts,
                                               const std::vector<Observer*>& observers, const StopFlag& stop);

// How many that are.
std::int64_t class_image_count(const std::vector<ConceptOptions>& concepts);

}  // namespace sdtune::train
