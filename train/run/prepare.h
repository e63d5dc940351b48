// Everything that training does before its first step, done beforehand: on a cheap machine, or to inspect it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/config/train_config.h"
#include "train/observe/observer.h"
#include "train/preflight/photo_report.h"
#include "train/run/train.h"

namespace sdtune::train {

struct PreparedRun {
  ExitCode code = ExitCode::kDone;
  std::filesystem::path contact_sheet;
  std::filesystem::path cache;  // where the encoded images and captions are
  PhotoReport photos;           // what was found in them; without the photos themselves
  std::int64_t class_images = 0;
  std::vector<std::string> notes;  // what an epoch consists of, what was found in the cache
};

// Generates the class images, encodes images and captions into cache_dir (or the run folder's `cache`, where `train`
// finds them), and writes the contact sheet. Refuses what train() would refuse, with the same errors; what is to be
// said of the photos goes to the observers.
PreparedRun prepare(const TrainConfig& config, const std::vector<Observer*>& observers,
                    const PortraitReaderSource& portrait_readers, const StopFlag& stop);

}  // namespace sdtune::train
