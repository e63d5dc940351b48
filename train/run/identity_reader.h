// What the looks at likeness of a run are read with, as its options say: the judge, or a face recognition network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "train/evaluate/identity_probe.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

inline constexpr std::int64_t kLookBatch = 8;  // pictures of a look that are drawn at once

// Which folder the judge of these options is in; empty where none is given and none is installed.
std::filesystem::path identity_judge_folder(const IdentityOptions& options);

// The middle square of a photo as the judge takes it: [3, 64, 64] in [-1, 1].
torch::Tensor picture_for_judge(const Image& photo);

// Throws WeightError for a judge and DataError for a network that cannot be used. Run and flag outlive the result.
std::unique_ptr<evaluate::ProbeReader> make_identity_reader(Run& run, const StopFlag& stop);

// The subjects of the run with their photos, as that reader takes them. Throws DataError for a photo that is not there
// any more.
std::vector<evaluate::ProbeSubject> identity_subjects(const Run& run);

// px of a picture of a look.
std::int64_t identity_picture_side(const Run& run);

// A digest of everything besides the weights that a score depends on.
std::string identity_exam(const Run& run);

}  // namespace sdtune::train
