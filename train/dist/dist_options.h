// The options of ranks that train together.
#pragma once

#include "model/base/field.h"

namespace sdtune::train {

struct DistOptions {
  double peer_timeout = 100;   // s, in training
  double start_timeout = 300;  // s, until all ranks have met

  FieldList fields();
};

}  // namespace sdtune::train
