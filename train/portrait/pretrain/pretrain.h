// From renders to a portrait base: autoencoder, classifier, then UNet with text encoder, each to its end or to the
// clock's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "train/portrait/pretrain/pretrain_options.h"
#include "train/portrait/pretrain/stage_loop.h"

namespace sdtune::train::pretrain {

struct PretrainObserver {
  std::function<void(const StageProgress&)> on_progress;
  std::function<void(const std::string&)> on_line;  // what begins or ended, in a sentence
};

struct PretrainResult {
  StageEnd end = StageEnd::kFinished;
  std::filesystem::path model_path;  // a diffusers folder; empty where the stage writes none
};

// What networks compute in where `chosen` is what options and device choose: never float16, since a stage has no loss
// scaling.
torch::Dtype pretrain_dtype(torch::Dtype chosen);

// Begins, or goes on where the output's checkpoints are. Throws ConfigError for options that do not fit the output,
// CheckpointError, StorageError, NonFiniteError.
PretrainResult pretrain(const PretrainOptions& options, const PretrainObserver& observer, const StopFlag& stop);

}  // namespace sdtune::train::pretrain
