// `sdtune convert --lora`: a LoRA under the names of other programs.
#pragma once

#include "app/convert/convert_options.h"

namespace sdtune::app {

// Reads options.lora for the layers of options.model and writes it to options.output as options.lora_naming says; with
// dry_run only reads and counts. Throws ConfigError, WeightError, StorageError.
void convert_lora(const ConvertOptions& options);

}  // namespace sdtune::app
