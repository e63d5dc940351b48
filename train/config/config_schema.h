// The configuration file of a training run as JSON Schema (draft 2020-12): configs/train.schema.json.
#pragma once

#include "model/base/json.h"

namespace sdtune::train {

// Of the whole file, with the entries of `concepts`; a file without options is one, too.
Json config_schema();

}  // namespace sdtune::train
