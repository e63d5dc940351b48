// What a run's numbers depend on, collected so that resuming with something else is refused by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint/run_state.h"
#include "train/config/train_config.h"
#include "train/data/photo_folder.h"
#include "train/run/run.h"

namespace sdtune::train {

// Of the files of a diffusers folder that decide what the model computes, by content.
std::string hash_of_base(const std::filesystem::path& base);

// A checkpoint's identity with the options that its version of sdtune did not have, at their defaults: what was not
// there yet had no effect.
RunIdentity completed_identity(RunIdentity saved);

// The values of the options that change numbers, as text; config.yaml's other options may differ between attempts.
std::map<std::string, std::string> identity_settings(const TrainConfig& config);

// Photo -> hash of file, caption and repeats, class picture -> hash of file and prompt.
std::map<std::string, std::string> identity_images(const std::vector<Photo>& photos,
                                                   const std::vector<ClassPicture>& class_images);

}  // namespace sdtune::train
