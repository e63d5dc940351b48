// Images to PNG, whole or not at all, with the texts that viewers and web interfaces read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/image.h"
#include "model/files/file_system.h"

namespace sdtune::model {

// One key and its value, for example {"parameters", "a photo of ..."}. Keys are 1 to 79 printable ASCII characters; the
// value is UTF-8.
struct PngText {
  std::string key;
  std::string value;
};

// The file's bytes: the same for the same image and texts. A text of ASCII characters becomes a tEXt chunk, any other
// an iTXt chunk. Throws DataError for an empty image, one whose size does not fit its pixels, or a bad key.
std::string encode_png(const Image& image, const std::vector<PngText>& texts = {});

// encode_png, written so that the file is whole or absent. Throws StorageError too.
void write_png(FileSystem& files, const std::filesystem::path& path, const Image& image,
               const std::vector<PngText>& texts = {});

}  // namespace sdtune::model
