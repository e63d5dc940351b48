// The options of a run as a whole: from what, to where, how long, how much at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct RunOptions {
  std::string base;    // folder or hub id; empty: the embedded model
  std::string output;  // run folder; empty: runs/<name of the photo folder>
  bool overwrite = false;
  std::string method = "full";
  std::string device = "auto";
  std::int64_t seed = 0;

  std::optional<std::int64_t> max_train_steps;   // optimizer steps; unset: by num_train_epochs, else by photos
  std::optional<std::int64_t> num_train_epochs;  // passes over the photos, when max_train_steps is unset
  std::int64_t train_batch_size = 1;             // photos a rank takes in one round
  std::int64_t gradient_accumulation_steps = 1;  // rounds of one optimizer step
  std::string micro_batch;                       // photos computed at once; empty: the batch
  bool gradient_checkpointing = false;
  bool cuda_graphs = false;
  bool train_text_encoder = false;
  std::vector<std::string> trainable_layers;  // of a full training, by the last parts of their names; empty: all

  TrainFieldList fields();
};

}  // namespace sdtune::train
