// The configuration of a training run: the sum of its components' options.
#pragma once

#include "model/base/field.h"
#include "train/checkpoint/checkpoint_options.h"
#include "train/config/settings.h"
#include "train/data/data_options.h"
#include "train/dist/dist_options.h"
#include "train/objective/objective_options.h"
#include "train/observe/observe_options.h"
#include "train/optim/optim_options.h"
#include "train/precision/precision_options.h"
#include "train/run/identity_options.h"
#include "train/run/lora_options.h"
#include "train/run/run_options.h"

namespace sdtune::train {

struct TrainConfig {
  RunOptions run;
  LoraOptions lora;
  DataOptions data;
  ObjectiveOptions objective;
  OptimOptions optim;
  PrecisionOptions precision;
  CheckpointOptions checkpoint;
  ObserveOptions observe;
  IdentityOptions identity;
  DistOptions dist;
  Origins origins;  // where the values that are not defaults came from

  // Every option, grouped for --help. The fields point into this object.
  FieldList fields();
};

}  // namespace sdtune::train
