// metadata.jsonl of a photo folder: captions, and where faces are, as data sets carry them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/image/crop.h"

namespace sdtune::train {

inline constexpr const char* kMetadataFile = "metadata.jsonl";

// What a line says of a photo. Other keys of the line have no effect.
struct PhotoNote {
  std::optional<std::string> text;      // the caption
  std::optional<model::ImageBox> face;  // "face": [left, top, width, height], px of the photo as it is seen
};

// Reads folder/metadata.jsonl: an object a line with "file_name" and, as far as known, "text" and "face". What is wrong
// goes to `problems` with file:line. Empty where there is no such file.
std::map<std::string, PhotoNote> read_metadata(const std::filesystem::path& folder, std::vector<Problem>& problems);

}  // namespace sdtune::train
