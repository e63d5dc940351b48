// Class images in a folder that several ranks share, where one rank may see late what another has written.
#pragma once

#include <chrono>

#include "train/data/class_image_sets.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

// The plan of plan_class_images as the first rank sees the folder, the same on every rank; no rank has written into it
// before all have it. Throws what plan_class_images throws.
ClassImagePlan shared_plan(ProcessGroup& group, const ClassImageSet& set, const ClassImageSettings& settings);

// After every rank has generated its share: each says which files it made, the first rank also those that were there,
// with their hashes, and waits until all of them are here with this content. Where some are not within `timeout`, every
// rank throws DataError naming the first of them and the rank that lacks it.
void await_class_images(ProcessGroup& group, const ClassImagePlan& plan, std::chrono::duration<double> timeout);

}  // namespace sdtune::train
