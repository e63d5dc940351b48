// Models by hub id, from the local Hugging Face cache alone. `sdtune fetch` brings them there (app/hub).
#pragma once

#include <filesystem>
#include <string>

namespace sdtune {

// HF_HUB_CACHE or its former name HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else huggingface/hub under XDG_CACHE_HOME
// or ~/.cache.
std::filesystem::path hub_cache_folder();

// Whether it has the form org/name: two parts of letters, digits, '-', '_' and '.', as hubs allow.
bool is_hub_id(const std::string& name);

// The folder of a model in the cache: models--org--name.
std::string hub_repository_name(const std::string& id);

// `name` itself when it is a folder; the installed base for portrait-128 and portrait-64; the cached snapshot
// (refs/main, else the newest) when it has the form org/name. Throws WeightError with the command that fetches it as a
// hint when it is neither, and when a file of the snapshot is a link that leaves the cache.
std::filesystem::path find_model_folder(const std::string& name);

}  // namespace sdtune
