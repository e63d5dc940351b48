// What to say when a base of rendered people, or their classifier, meets photos of a real one.
#pragma once

#include <optional>
#include <vector>

#include "model/base/error.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// A warning when the base at `base_folder` learnt from renders alone (its sdtune.json says so) and photos come from
// elsewhere: any file without the text that sdtune writes into its own images counts as a camera photo.
std::optional<Problem> camera_photo_warning(const std::filesystem::path& base_folder, const std::vector<Photo>& photos);

// What is wrong with identity_steps when the classifier of rendered people cannot read the photos.
std::optional<Problem> unreadable_photos(const std::vector<Photo>& photos);

}  // namespace sdtune::train
