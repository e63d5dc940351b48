// The report on a run's photos, before it: what `doctor`, `check` and `prepare` say of them, and the contact sheet.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/file_system.h"
#include "train/config/train_config.h"
#include "train/data/dataset_doctor.h"

namespace sdtune::train {

struct PhotoReport {
  PhotoFolder folder;
  CropRule rule;
  Diagnosis diagnosis;
};

// Reads and examines all photos of the configuration, once. The resolution is the configuration's, else the base's;
// neither loads a model. Throws DataError for a folder without photos, ConfigError for what is wrong with options.
PhotoReport examine_photos(const TrainConfig& config);

// The crops of the photos as they are trained on, pixel for pixel, each with its file name, its size and what the
// diagnosis says of it. At most as many as fit into a picture of 64 megapixels; returns how many are shown.
std::size_t write_contact_sheet(FileSystem& files, const std::filesystem::path& path, const PhotoReport& report,
                                const DataOptions& options);

}  // namespace sdtune::train
