// Which photos of a subject show another person.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "train/data/photo_folder.h"

namespace sdtune::train {

// By the identities of the examinations (PhotoAnalysis::identity), each photo against the others of its subject: one is
// an outlier where its median cosine to the others lies below `same_from`; unset, below half of the median that the
// photos have. Of fewer than four photos, and where a third or more would be outliers, it is not known
// which are the subject: none.
std::vector<std::size_t> identity_outliers(const std::vector<Photo>& photos, std::optional<double> same_from);

}  // namespace sdtune::train
