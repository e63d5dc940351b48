// A whole model into one LDM safetensors file, which other programs open.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/pipeline/bundle.h"
#include "model/single_file/model_family.h"

namespace sdtune::model {

// Whether the model of this scheduler predicts v rather than the noise. Throws WeightError naming `where` for one that
// predicts x0.
bool predicts_velocity(const Json& scheduler_config, const std::string& where);

// Writes the parts of `bundle`, floating tensors cast to `dtype`, with modelspec metadata (architecture, prediction
// type, resolution) and what old loaders insist on: logit_scale, and for SD 2.x a 24th layer and a projection, neither
// of which changes an image. The file is read again and compared bit by bit before it gets its name; a file that was
// there is then replaced. Throws WeightError for a model that the layout cannot say (it predicts x0), StorageError when
// writing fails or what is read differs; nothing of that name has then changed. Returns the number of tensors.
std::int64_t write_single_file(FileSystem& files, const ModelBundle& bundle, ModelFamily family,
                               const std::filesystem::path& path, torch::Dtype dtype);

}  // namespace sdtune::model
