// What a run's numbers depend on, collected so that resuming with something else is refused by name.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint/run_state.h"
#include "train/config/train_config.h"
#include "train/data/class_images.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// The files of a base that decide numbers, sorted. Throws WeightError where a folder of it cannot be listed.
std::vector<std::filesystem::path> files_of_base(const std::filesystem::path& base);

// Those files, below the folder and with '/', and their hashes; sorted as they are. Reads all of them.
std::vector<std::pair<std::string, std::string>> hashes_of_base(const std::filesystem::path& base);

// Of the files of a diffusers folder that decide what the model computes, by content.
std::string hash_of_base(const std::filesystem::path& base);
std::string hash_of_base(const std::vector<std::pair<std::string, std::string>>& hashes);

// A checkpoint's fingerprint with the options that its version of sdtune did not have, at their defaults: what was not
// there yet had no effect. What was there and not recorded is taken from `now`, the run that resumes: allow_tf32 and
// sums in half precision.
ResumeFingerprint completed_fingerprint(ResumeFingerprint saved, const ResumeFingerprint& now);

// The part that every version has recorded: what later versions added is left out, so that a hash of it stays the same.
ResumeFingerprint always_recorded(ResumeFingerprint fingerprint);

// The values, as text, of the options that a resumed run must keep: those declared with Resume::kMustMatch, and by rule
// the optimizer, and max_train_steps where the learning rate or the text encoder's training depends on it.
std::map<std::string, std::string> fingerprint_settings(const TrainConfig& config);

// Photo -> hash of file, caption and repeats; class image -> hash of file and prompt; with `masked`, mask -> hash of
// its file.
std::map<std::string, std::string> fingerprint_images(const std::vector<Photo>& photos,
                                                      const std::vector<ClassImage>& class_images, bool masked);

// What a class image may be called among them: its file's name, and where two subjects have files of one name, also its
// prompt.
std::array<std::string, 2> class_image_names(const std::filesystem::path& file, const std::string& prompt);

}  // namespace sdtune::train
