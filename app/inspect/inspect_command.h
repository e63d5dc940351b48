// What a path is, as JSON: each function returns an object whose first key is "kind".
#pragma once

#include <filesystem>

#include "model/base/json.h"

namespace sdtune::app {

// Finds out by content which of the below `path` is. Throws DataError for a path that is absent or nothing we know.
Json inspect_path(const std::filesystem::path& path);

Json inspect_model_folder(const std::filesystem::path& folder);  // with model_index.json
Json inspect_lora_folder(const std::filesystem::path& folder);   // what a LoRA training made
Json inspect_part_folder(const std::filesystem::path& folder);   // unet/, vae/, ...: config.json beside weights
Json inspect_safetensors(const std::filesystem::path& file);     // also LoRA files
Json inspect_checkpoint(const std::filesystem::path& folder);    // step-00000100, hashed in full
Json inspect_run(const std::filesystem::path& folder);           // a run folder
Json inspect_photo_folder(const std::filesystem::path& folder);
Json inspect_image(const std::filesystem::path& file);

}  // namespace sdtune::app
