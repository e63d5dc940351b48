// A part of a model whose weights nothing has changed: its files, copied.
#pragma once

#include <filesystem>

#include "model/files/file_system.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {

// Copies config.json and the weights of the part in `from` to `to` byte by byte, and reads them again. Of several
// variants the one that load_part reads; it loses ".fp16" from its name, so that loaders find it without being told.
// Throws WeightError for a part that is not there any more, StorageError where the copy cannot be written or differs.
void copy_part(FileSystem& files, const std::filesystem::path& from, const std::filesystem::path& to,
               const PartKind& kind);

}  // namespace sdtune::model
