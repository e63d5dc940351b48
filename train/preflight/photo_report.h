// The report on a run's photos, before it: what `doctor`, `check` and `prepare` say of them, and the contact sheet.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "train/config/train_config.h"
#include "train/data/dataset_doctor.h"
#include "train/data/decoded_photos.h"
#include "train/identity/portrait_reader_source.h"
#include "train/identity/reference_photos.h"

namespace sdtune::train {

// What the photos are read for.
enum class PhotoUse {
  kRead,     // whether they can be
  kExamine,  // and what should be said of them
  kTrain,    // kept for training; faces are searched where crops show them
  kPrepare   // both: examined and kept
};

struct PhotoReport {
  PhotoFolder folder;
  CropRule rule;
  Diagnosis diagnosis;                             // of examined photos
  std::string face_trouble = {};                   // why faces were not searched, where they were asked for
  std::shared_ptr<const DecodedPhotos> kept = {};  // null unless they are kept
  IdentityInputs identity = {};
};

// Reads all photos of the configuration, each once. The resolution is the configuration's, else the base's;
// neither loads a model. Throws DataError for a folder without photos, ConfigError for what is wrong with options.
PhotoReport examine_photos(const TrainConfig& config, const PortraitReaderSource& portrait_readers,
                           PhotoUse use = PhotoUse::kExamine);

// How the photos of a run are cropped, by its options and its base's configs; the square of a base that cannot be read
// is 64 px, so that no photo is called too small for it.
CropRule crop_rule(const TrainConfig& config);

// The filter that image_interpolation_mode names.
model::Filter photo_filter(const TrainConfig& config);

// The crops of the photos as they are trained on, pixel for pixel, each with its file name, its size and what the
// diagnosis says of it. At most as many as fit into an image of 64 megapixels; returns how many are shown.
std::size_t write_contact_sheet(FileSystem& files, const std::filesystem::path& path, const PhotoReport& report,
                                const DataOptions& options);

}  // namespace sdtune::train
