#include "train/preflight/rendered_base.h"

#include <algorithm>
#include <cstdint>

#include "model/files/model_note.h"

namespace sdtune::train {

namespace {

std::int64_t count_camera_photos(const std::vector<Photo>& photos) {
  return std::count_if(photos.begin(), photos.end(), [](const Photo& photo) { return !photo.is_rendered; });
}

}  // namespace

std::optional<Problem> camera_photo_warning(const std::filesystem::path& base_folder,
                                            const std::vector<Photo>& photos) {
  if (!read_model_note(base_folder).rendered_people) return std::nullopt;
  const std::int64_t count = count_camera_photos(photos);
  if (count == 0) return std::nullopt;
  return Problem{"base",
                 "generates small rendered people, and " + std::to_string(count) + " of " +
                     std::to_string(photos.size()) +
                     " photos are not renders of sdtune: real portraits need --base with a Stable Diffusion folder",
                 "see docs/weights.md"};
}

std::optional<Problem> unreadable_photos(const std::vector<Photo>& photos) {
  const std::int64_t count = count_camera_photos(photos);
  if (count == 0) return std::nullopt;
  return Problem{"identity_steps",
                 "the portrait classifier reads renders of sdtune, and " + std::to_string(count) + " of " +
                     std::to_string(photos.size()) + " photos are none",
                 "give identity_model, or leave it out; validation_prompt and validation_data_dir watch any photos"};
}

}  // namespace sdtune::train
