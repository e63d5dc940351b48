// From photo folder and configuration to what the steps read, once, before training.
#pragma once

#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "model/pipeline/bundle.h"
#include "train/config/run_folder.h"
#include "train/config/train_config.h"
#include "train/dist/process_group.h"
#include "train/observe/observer.h"
#include "train/preflight/preflight.h"
#include "train/prepare/training_data.h"

namespace sdtune::train {

// What preparation needs of a run. The bundle outlives the data made with it.
struct PrepareContext {
  const TrainConfig& config;  // with a resolution
  const RunFolder& folder;
  model::ModelBundle& bundle;  // float32 on a CPU, in the compute dtype on a GPU
  ProcessGroup& group;
  torch::Device device;
  std::string base_hash;
  const Preflight& preflight;  // the photos that it read
  const std::vector<Observer*>& observers;
  const StopFlag& stop;

  bool trains_text() const { return config.run.train_text_encoder; }
};

// Fills `data`, all but its plan: takes the preflight's photos, generates the class images that are missing (each rank
// its share), encodes images to moments and, while the encoder is frozen, captions to prompt embeddings. Returns notes
// for the user. Throws DataError listing every image that cannot be read, and StopRequest
// (stop_request.h) when asked to stop; what was generated until then is kept.
std::vector<std::string> prepare_data(const PrepareContext& context, TrainingData& data);

}  // namespace sdtune::train
