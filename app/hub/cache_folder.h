// A model's place in the Hugging Face cache, in the layout that huggingface_hub reads: blobs/HASH, refs/REVISION (which
// holds a commit), snapshots/COMMIT/FILE, a link to its blob.
#pragma once

#include <filesystem>
#include <string>

namespace sdtune::app {

class CacheFolder {
 public:
  CacheFolder(std::filesystem::path cache, const std::string& id);

  std::filesystem::path blob(const std::string& hash) const { return folder_ / "blobs" / hash; }
  std::filesystem::path lock(const std::string& hash) const;
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  // Makes snapshots/COMMIT/FILE a link to the blob, and returns it. Throws StorageError.
  std::filesystem::path link(const std::string& commit, const std::string& file, const std::string& hash) const;
  // Writes refs/REVISION, unless the revision is the commit itself. Throws StorageError.
  void write_reference(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path cache_;
  std::string name_;  // models--org--name
  std::filesystem::path folder_;
};

}  // namespace sdtune::app
