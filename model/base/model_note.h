// sdtune.json, beside model_index.json of a model that sdtune wrote: what diffusers' files have no place for. It is
// copied with the folder, and diffusers passes over it.
#pragma once

#include <filesystem>
#include <string>

#include "model/base/file_system.h"

namespace sdtune {

struct ModelNote {
  std::string trigger;           // the words that call the trained subject, "sks person"; empty for a base
  bool rendered_people = false;  // it learnt from renders alone, or started from such a base: no camera photo was in it
};

// The note of a diffusers folder; an empty one where the folder has none. Throws WeightError naming the file when it is
// malformed. Keys that are not known are passed over: a later version may write more.
ModelNote read_model_note(const std::filesystem::path& folder);

// Throws StorageError.
void write_model_note(FileSystem& files, const ModelNote& note, const std::filesystem::path& folder);

}  // namespace sdtune
