// sdtune.json, beside the files of a model or LoRA that sdtune wrote: what diffusers' files have no place for. It is
// copied with the folder, and diffusers passes over it.
#pragma once

#include <filesystem>
#include <string>

#include "model/files/file_system.h"

namespace sdtune {

struct ModelNote {
  std::string trigger;           // the words that call the trained subject, "sks person"; empty for a base
  bool rendered_people = false;  // it learnt from renders alone, or started from such a base: no camera photo was in it
  std::string base = {};  // of a LoRA: the model it was trained on, a folder or hub id; empty: it is a whole model
  std::string base_fingerprint = {};  // of that model (model/files/model_fingerprint.h)
};

// The note of a diffusers folder; an empty one where the folder has none. Throws WeightError naming the file when it is
// malformed. Keys that are not known are passed over: a later version may write more.
ModelNote read_model_note(const std::filesystem::path& folder);

// Throws StorageError.
void write_model_note(FileSystem& files, const ModelNote& note, const std::filesystem::path& folder);

}  // namespace sdtune
