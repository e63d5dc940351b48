// The options of ranks that train together.
#pragma once

#include <string>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct DistOptions {
  double peer_timeout = 100;   // s, in training
  double start_timeout = 300;  // s, until all ranks have met

  std::string shard = "optimizer";  // none, optimizer, gradients; a rank alone keeps all
  std::string comm_hook = "no";     // no, bf16

  TrainFieldList fields();
};

}  // namespace sdtune::train
