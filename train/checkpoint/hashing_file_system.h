// Hashes what is written while it is still in memory, so that a manifest states what should be on the disk and not what
// came back from it. Large pieces are hashed by another thread while they are written: each takes about as long.
#pragma once

#include <memory>
#include <string>

#include "model/files/file_system.h"
#include "model/files/manifest.h"

namespace sdtune::train {

// Passes every call on to another file system. Files that are created and closed directly in `folder` are listed in
// manifest().
class HashingFileSystem : public FileSystem {
 public:
  HashingFileSystem(FileSystem& inner, std::filesystem::path folder);

  std::unique_ptr<OutputFile> create(const std::filesystem::path& path) override;
  // A listed file that is renamed inside the folder is listed under its new name.
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void sync_directory(const std::filesystem::path& path) override { inner_.sync_directory(path); }
  void create_directories(const std::filesystem::path& path) override { inner_.create_directories(path); }
  void unlink(const std::filesystem::path& path) override;
  void remove_tree(const std::filesystem::path& path) override { inner_.remove_tree(path); }

  const Manifest& manifest() const { return manifest_; }

 private:
  class HashingFile;

  FileSystem& inner_;
  std::filesystem::path folder_;
  Manifest manifest_;
};

}  // namespace sdtune::train
