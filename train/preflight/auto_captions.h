// Captions by the portrait classifier, of photos that have none (auto_caption_rate).
#pragma once

#include <memory>
#include <vector>

#include "train/config/train_config.h"
#include "train/data/photo_folder.h"
#include "train/identity/portrait_reader_source.h"
#include "train/identity/reference_photos.h"

namespace sdtune::train {

// Where the photos are to be kept for it; null where nothing is captioned, or the classifier cannot be read, which
// check_auto_captions names.
std::shared_ptr<ReferencePhotos> photos_to_caption(const TrainConfig& config, const PortraitReaderSource& readers);

// Throws ConfigError: there is no such classifier, or auto_caption_rate was asked for, not by the base's preset, and a
// photo without a caption is no render of sdtune's.
void check_auto_captions(const TrainConfig& config, const PortraitReaderSource& readers,
                         const std::vector<Photo>& photos);

// Fills auto_caption of each render without a caption of its own. `kept`: see photos_to_caption.
void caption_photos(const TrainConfig& config, const PortraitReaderSource& readers, const ReferencePhotos& kept,
                    std::vector<Photo>& photos);

}  // namespace sdtune::train
