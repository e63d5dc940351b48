// Which photos of a subject show somebody else.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "train/data/photo_folder.h"

namespace sdtune::train {

// By the identities of the examinations (PhotoExam::identity), each photo against the others of its subject: one is a
// stranger where its median cosine to the others lies below `same_from`; unset, below half of the median that the
// photos have. Of fewer than four photos, and where a third or more would be strangers, nobody can be told from the
// rest: none.
std::vector<std::size_t> strangers(const std::vector<Photo>& photos, std::optional<double> same_from);

}  // namespace sdtune::train
