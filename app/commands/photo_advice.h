// How commands print what is to be said of photos.
#pragma once

#include <vector>

#include "model/base/json.h"
#include "train/data/dataset_doctor.h"

namespace sdtune::app {

// A line each on stderr: "sdtune: warning: ..." and "sdtune: note: ...".
void print_advice(const train::Diagnosis& advice);

// [{"where", "what", "hint"}, ...]
Json problems_json(const std::vector<Problem>& problems);

}  // namespace sdtune::app
