// The photos of a run: found, sorted, hashed, decoded once to prove that they can be, and captioned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"

namespace sdtune::train {

struct Photo {
  std::filesystem::path path;
  std::int64_t width = 0;   // px, as seen: after the EXIF turn
  std::int64_t height = 0;  // px
  std::uint64_t bytes = 0;  // of the file
  std::string sha256;       // of the file
  std::string caption;      // from the .txt of the same name, else the folder's prompt
};

struct PhotoFolder {
  std::vector<Photo> photos;      // in natural order of their names: img2 before img10
  std::vector<Problem> bad;       // pictures that cannot be read and captions that are wrong, all of them
  std::vector<Problem> left_out;  // files that are no pictures and do not hurt: .DS_Store, .json, folders, ...
  std::vector<Problem> warnings;  // photos with the same content, captions without a photo
};

// Reads every file of `folder` (not of its subfolders). `prompt` is the caption of a photo that has none of its own,
// and of all when use_captions is false. Nothing is thrown for single files: see PhotoFolder. Throws DataError when
// there is no such folder or it holds no picture at all.
PhotoFolder scan_photos(const std::filesystem::path& folder, const std::string& prompt, bool use_captions);

// Names in the order people expect: runs of digits compare as numbers.
bool natural_less(std::string_view left, std::string_view right);

}  // namespace sdtune::train
