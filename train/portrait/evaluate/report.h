// An evaluation as people and programs read it.
#pragma once

#include <string>

#include "model/base/image.h"
#include "model/base/json.h"
#include "train/portrait/evaluate/evaluation.h"

namespace sdtune::train::evaluate {

// A row a figure, a column a set of images, "0.93 (0.86-0.97)" in the cells; the three ratios below.
std::string table_of(const Evaluation& evaluation);

// {"rows": {"tuned": {"prompt_fidelity": {"value", "low", "high", "count"}, ...}, ...}, "accepted_of_renders", ...}
Json to_json(const Evaluation& evaluation);

// Three rows of images: the references, the base's and the tuned model's answers to the prompts.
Image sheet_of(const Evaluation& evaluation);

}  // namespace sdtune::train::evaluate
