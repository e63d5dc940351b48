// manifest.json: every file of a folder with its size and hash. It is written last, so a folder counts only once it is
// whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/read_pieces.h"

namespace sdtune {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestEntry {
  std::string name;        // relative to the folder, with '/'
  std::uint64_t size = 0;  // bytes
  std::string sha256;
};

struct Manifest {
  std::vector<ManifestEntry> files;

  // Hashes every file under `folder` but the manifest itself, sorted by name.
  static Manifest of_folder(const std::filesystem::path& folder);
  // Reads folder/manifest.json. Throws WeightError when it is absent or malformed.
  static Manifest read(const std::filesystem::path& folder);
  // Writes folder/manifest.json atomically.
  void write(FileSystem& files, const std::filesystem::path& folder) const;
  // What differs on disk from what is listed: missing, other size, other hash, each naming file, expected and found;
  // empty when all is as written. Files that are not listed are none of its business.
  std::vector<Problem> verify(const std::filesystem::path& folder, PageCache cache = PageCache::kKeep) const;
};

}  // namespace sdtune
