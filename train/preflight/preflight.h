// What would go wrong: everything that can be known before training, found in one go. What was read for it is kept, so
// that training reads no photo a second time.
#pragma once

#include <vector>

#include "model/base/error.h"
#include "train/config/train_config.h"
#include "train/identity/portrait_reader_source.h"
#include "train/preflight/photo_report.h"
#include "train/resume/resume_point.h"

namespace sdtune::train {

struct Preflight {
  std::vector<Problem> problems;  // empty: `train` will start
  PhotoReport photos;
  PhotoReport held_out;  // of validation_data_dir
  ResumePoint resume;
};

// Every fault of the configuration and of what it points to: photos, captions, base, tokenizer, output folder,
// checkpoint, disk space, device. Reads photos fully and weight headers only, loads no model and writes nothing. Only
// with resume_from_checkpoint are a checkpoint and the base's files read as a whole, to compare their hashes.
Preflight run_preflight(const TrainConfig& config, const PortraitReaderSource& portrait_readers, PhotoUse use);

// The problems alone.
std::vector<Problem> find_problems(const TrainConfig& config, const PortraitReaderSource& portrait_readers);

// Throws the problems, if there are any: CheckpointError when only the checkpoint has faults, else ConfigError.
void refuse_problems(const Preflight& preflight);

}  // namespace sdtune::train
