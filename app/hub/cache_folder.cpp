#include "app/hub/cache_folder.h"

#include <iterator>
#include <utility>

#include "app/hub/file_lock.h"
#include "model/files/file_system.h"
#include "model/files/growing_file.h"
#include "model/files/hub_cache.h"

namespace sdtune::app {

namespace fs = std::filesystem;

CacheFolder::CacheFolder(fs::path cache, const std::string& id)
    : cache_(std::move(cache)), name_(hub_repository_name(id)), folder_(cache_ / name_) {
  real_file_system().create_directories(folder_ / "blobs");
}

fs::path CacheFolder::lock(const std::string& hash) const {
  return cache_ / ".locks" / name_ / (hash + ".lock");
}

fs::path CacheFolder::link(const std::string& commit, const std::string& file, const std::string& hash) const {
  const fs::path place = snapshot(commit) / file;
  create_parent_folder(real_file_system(), place);
  fs::path target = "../..";  // from snapshots/COMMIT
  const fs::path inner(file);
  for (auto above = std::distance(inner.begin(), inner.end()) - 1; above > 0; --above) target /= "..";
  target /= fs::path("blobs") / hash;
  const FileLock alone(lock("links"));  // another process would make it by way of the same unfinished name
  std::error_code error;
  if (fs::read_symlink(place, error) != target) replace_link(target, place);
  return place;
}

void CacheFolder::write_reference(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const fs::path reference = folder_ / "refs" / revision;
  create_parent_folder(real_file_system(), reference);
  const FileLock alone(lock("links"));
  write_file_atomically(real_file_system(), reference, commit);
}

}  // namespace sdtune::app
