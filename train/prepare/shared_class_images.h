// Class images of several ranks, whose folders may be one and the same, or each on a disk of its own.
#pragma once

#include "train/data/class_image_sets.h"
#include "train/dist/process_group.h"
#include "train/dist/send_files.h"

namespace sdtune::train {

// The plan of plan_class_images as the first rank sees the folder, the same on every rank; no rank has written into it
// before all have it. Throws what plan_class_images throws.
ClassImagePlan shared_plan(ProcessGroup& group, const ClassImageSet& set, const ClassImageSettings& settings);

// After every rank has generated its share: each says which files it made, the first rank also those that were there,
// with their hashes, and sends what others lack into the folder of `exchange`. Generated files of other content are
// replaced; where one of the user's differs, every rank throws DataError naming the file and the rank. Throws what
// send_files throws.
void share_class_images(ProcessGroup& group, const ClassImagePlan& plan, const FileExchange& exchange);

}  // namespace sdtune::train
