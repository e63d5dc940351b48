// A model's modules before their weights.
#pragma once

#include <filesystem>

#include "model/pipeline/bundle.h"
#include "model/pipeline/bundle_configs.h"

namespace sdtune::model {

// Every part as its config says, in evaluation mode. The weights are float32 on the CPU and without initial values:
// memory that is not touched costs nothing, so names and shapes of a model of any size can be read.
ModelBundle empty_bundle(BundleConfigs configs, const std::filesystem::path& folder);

}  // namespace sdtune::model
