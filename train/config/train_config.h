// The configuration of a training run: the sum of its components' options.
#pragma once

#include "model/options/field.h"
#include "model/options/settings.h"
#include "train/config/checkpoint_options.h"
#include "train/config/data_options.h"
#include "train/config/dist_options.h"
#include "train/config/identity_options.h"
#include "train/config/lora_options.h"
#include "train/config/objective_options.h"
#include "train/config/observe_options.h"
#include "train/config/optim_options.h"
#include "train/config/precision_options.h"
#include "train/config/rental_options.h"
#include "train/config/run_options.h"

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
  RentalOptions rental;
  Origins origins;     // where the values that are not defaults came from
  std::string preset;  // the YAML file with the defaults of the base; empty: none

  // Every option, grouped for --help. The fields point into this object.
  FieldList fields();
};

}  // namespace sdtune::train
