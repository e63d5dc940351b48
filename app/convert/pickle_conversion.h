// `sdtune convert --pickle`: the tensors of a .ckpt or .bin file to a safetensors file.
#pragma once

#include "app/convert/convert_options.h"

namespace sdtune::app {

// Writes the tensors of options.pickle under their names to options.output, reads them back and compares; with dry_run
// only reads and counts. Throws ConfigError, WeightError, StorageError.
void convert_pickle(const ConvertOptions& options);

}  // namespace sdtune::app
