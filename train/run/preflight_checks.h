// The parts of find_problems, one for each thing that a configuration points to. Each adds what it finds to `problems`
// and throws nothing for users' mistakes.
#pragma once

#include <optional>
#include <vector>

#include "model/base/error.h"
#include "model/pipeline/model_survey.h"
#include "train/config/train_config.h"
#include "train/data/dataset_doctor.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// Options that contradict each other, on any machine.
void check_contradictions(const TrainConfig& config, std::vector<Problem>& problems);

// Those, and options that ask for what this machine does not have.
void check_options(const TrainConfig& config, std::vector<Problem>& problems);

// The photo folders: every picture is decoded once, and examined where `advice` is given. Returns those that can be
// trained on.
std::vector<Photo> check_pictures(const TrainConfig& config, Diagnosis* advice, std::vector<Problem>& problems);

// The photos of validation_data_dir, decoded as well.
void check_held_out(const TrainConfig& config, std::vector<Problem>& problems);

// The base model by its configs, weight headers and tokenizer; and what depends on it: resolution, lengths of prompts
// and captions. Unset when there is no such model.
std::optional<model::ModelSurvey> check_base(const TrainConfig& config, const std::vector<Photo>& photos,
                                             std::vector<Problem>& problems);

// What looks at likeness need: a base of rendered people, photos of one, a judge, words that call the subject.
void check_identity(const TrainConfig& config, const std::vector<Photo>& photos, std::vector<Problem>& problems);

// Whether there is a checkpoint to go on from, whether the run folder is free and can be written, and whether the disk
// holds two checkpoints and the model.
void check_output(const TrainConfig& config, const std::optional<model::ModelSurvey>& base,
                  std::vector<Problem>& problems);

}  // namespace sdtune::train
