// The check of the photo folder.
#include <utility>

#include "train/run/preflight_checks.h"

namespace sdtune::train {

std::vector<Photo> check_pictures(const TrainConfig& config, std::vector<Problem>& problems) {
  const DataOptions& options = config.data;
  if (options.images.empty()) {
    problems.push_back({"images", "is not given", "name the folder with the photos: --images DIR"});
    return {};
  }
  try {
    PhotoFolder photos = scan_photos(options.images, options.instance_prompt, options.use_captions);
    const bool stops = options.on_bad_image == "stop" || photos.photos.empty();
    if (stops) problems.insert(problems.end(), photos.bad.begin(), photos.bad.end());
    return std::move(photos.photos);
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return {};
}

}  // namespace sdtune::train
