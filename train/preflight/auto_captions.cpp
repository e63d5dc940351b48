#include "train/preflight/auto_captions.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "model/base/error.h"
#include "train/config/preset.h"

namespace sdtune::train {
namespace {

bool is_to_caption(const Photo& photo) {
  return photo.is_rendered && !photo.has_caption;
}

}  // namespace

std::shared_ptr<ReferencePhotos> photos_to_caption(const TrainConfig& config, const PortraitReaderSource& readers) {
  if (config.data.auto_caption_rate == 0 || !readers.has_reader(config.identity)) return nullptr;
  try {
    return std::make_shared<ReferencePhotos>(readers.side(config.identity));
  } catch (const WeightError&) {
    return nullptr;
  }
}

void check_auto_captions(const TrainConfig& config, const PortraitReaderSource& readers,
                         const std::vector<Photo>& photos) {
  if (config.data.auto_caption_rate == 0) return;
  const auto camera = std::find_if(photos.begin(), photos.end(),
                                   [](const Photo& photo) { return !photo.is_rendered && !photo.has_caption; });
  if (camera != photos.end() && !is_of_preset(config, "auto_caption_rate")) {
    throw ConfigError("auto_caption_rate", "needs renders of sdtune, and " + camera->path.string() + " is none",
                      "write a caption into its .txt file, or leave auto_caption_rate out");
  }
  if (std::none_of(photos.begin(), photos.end(), is_to_caption)) return;
  std::vector<Problem> problems = readers.problems(config.identity);
  for (Problem& problem : problems) problem.what += "; auto_caption_rate needs it";
  if (!problems.empty()) throw ConfigError(problems);
}

void caption_photos(const TrainConfig& config, const PortraitReaderSource& readers, const ReferencePhotos& kept,
                    std::vector<Photo>& photos) {
  std::vector<std::size_t> chosen;
  std::vector<torch::Tensor> images;
  for (std::size_t i = 0; i < photos.size(); ++i) {
    if (!is_to_caption(photos[i])) continue;
    chosen.push_back(i);
    images.push_back(kept.read(photos[i]));
  }
  if (chosen.empty()) return;
  const std::vector<std::string> words = readers.load(config.identity)->describe(images);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Photo& photo = photos[chosen[i]];
    if (!words[i].empty()) photo.auto_caption = photo.caption + " " + words[i];
  }
}

}  // namespace sdtune::train
