#include "train/run/rendered_base.h"

#include <algorithm>

#include "model/base/model_note.h"
#include "model/image/png_text.h"

namespace sdtune::train {

std::optional<Problem> camera_photo_warning(const std::filesystem::path& base_folder,
                                            const std::vector<Photo>& photos) {
  if (!read_model_note(base_folder).rendered_people) return std::nullopt;
  const auto count = std::count_if(photos.begin(), photos.end(),
                                   [](const Photo& photo) { return !model::is_made_by_sdtune(photo.path); });
  if (count == 0) return std::nullopt;
  return Problem{"base",
                 "draws small rendered people, and " + std::to_string(count) + " of " + std::to_string(photos.size()) +
                     " photos are not renders of sdtune: real portraits need --base with a Stable Diffusion folder",
                 "see docs/weights.md"};
}

}  // namespace sdtune::train
