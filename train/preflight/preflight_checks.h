// The parts of find_problems, one for each thing that a configuration points to. Each adds what it finds to `problems`
// and throws nothing for users' mistakes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/model_survey.h"
#include "train/config/train_config.h"
#include "train/data/photo_folder.h"
#include "train/identity/portrait_reader_source.h"
#include "train/preflight/photo_report.h"
#include "train/resume/resume_point.h"

namespace sdtune::train {

// What an earlier check found already is said once.
inline void append(std::vector<Problem>& problems, const std::vector<Problem>& more) {
  for (const Problem& problem : more) {
    const bool is_known = std::any_of(problems.begin(), problems.end(),
                                      [&](const Problem& known) { return known.line() == problem.line(); });
    if (!is_known) problems.push_back(problem);
  }
}

// Such a run may have begun before held-out photos were checked as they are now.
inline bool resumes_by_name(const TrainConfig& config) {
  const std::string& resumed = config.checkpoint.resume_from_checkpoint;
  return !resumed.empty() && resumed != "auto";
}

// Options that contradict each other, on any machine.
void check_contradictions(const TrainConfig& config, std::vector<Problem>& problems);

// Those, and options that ask for what this machine does not have.
void check_options(const TrainConfig& config, std::vector<Problem>& problems);

// Options for a rented machine, and whether the metadata service of preemption answers.
void check_rental(const TrainConfig& config, std::vector<Problem>& problems);

// report_to and notify: packages, an interpreter, the form of an address. Only on the first rank.
void check_trackers(const TrainConfig& config, std::vector<Problem>& problems);

// Whether the device computes in mixed_precision; `auto` fits every device.
void check_precision(const TrainConfig& config, std::vector<Problem>& problems);

// The photo folders: each photo is decoded once, examined and kept as `use` asks. What is returned can be trained on.
PhotoReport check_photos(const TrainConfig& config, const PortraitReaderSource& readers, PhotoUse use,
                         std::vector<Problem>& problems);

// The photos of validation_data_dir, likewise; and whether they have captions or prompts of the `trained` ones.
PhotoReport check_held_out(const TrainConfig& config, PhotoUse use, const std::vector<Photo>& trained,
                           std::vector<Problem>& problems);

// The user's own images in the folders of class images, which generated ones complete.
void check_class_images(const TrainConfig& config, std::vector<Problem>& problems);

// The base model by its configs, weight headers and tokenizer; and what depends on it: resolution, lengths of prompts
// and of the captions of photos and held-out ones. Unset when there is no such model.
std::optional<model::ModelSurvey> check_base(const TrainConfig& config, const std::vector<Photo>& photos,
                                             const std::vector<Photo>& held_out, std::vector<Problem>& problems);

// What the run generates before its first step: whether the base's scheduler takes the steps of class images, of the
// first validation and of the first identity evaluation, and whether class images can be written.
void check_generation(const TrainConfig& config, const model::ModelBundle& base, std::vector<Problem>& problems);

// What identity evaluation needs: a base of rendered people, photos of one, a classifier, words that call the subject.
void check_identity(const TrainConfig& config, const PortraitReaderSource& readers, const std::vector<Photo>& photos,
                    std::vector<Problem>& problems);

// Whether a folder that `option` names can be written, or made. False where it can be neither.
bool check_writable(const std::string& option, const std::filesystem::path& folder, std::vector<Problem>& problems);

// Whether the run folder is free and can be written, and whether the disk holds two checkpoints and the model.
void check_output(const TrainConfig& config, const std::optional<model::ModelSurvey>& base,
                  std::vector<Problem>& problems);

// Whether the checkpoint of resume_from_checkpoint is whole, and where nothing else is wrong, what changed since it was
// written: options, photos, captions, class images, masks, base, effective batch.
ResumePoint check_resume(const TrainConfig& config, const std::optional<model::ModelSurvey>& base,
                         const std::vector<Photo>& photos, std::vector<Problem>& problems);

// A warm-up that is longer than the run, where photos or epochs say how long that is; with max_train_steps
// check_options compares them. A run with a checkpoint keeps its rates.
void check_warm_up(const TrainConfig& config, const PhotoFolder& folder, const ResumePoint& resume,
                   std::vector<Problem>& problems);

}  // namespace sdtune::train
