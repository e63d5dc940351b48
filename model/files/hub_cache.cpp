#include "model/files/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "model/base/environment.h"
#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/install_paths.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

fs::path require_bundled_base(const std::string& name) {
  const fs::path folder = find_bundled_base(name);
  if (!folder.empty()) return folder;
  throw WeightError(name, "the bundled base is not in this installation (looked for share/sdtune/models)",
                    "give a Stable Diffusion folder instead: --base DIR; docs/weights.md says where to get one");
}

std::optional<fs::path> snapshot_of(const fs::path& repository) {
  std::error_code error;
  const fs::path main = repository / "refs" / "main";
  if (is_file(main)) {
    std::string commit = read_file(main, 4096);
    commit.erase(commit.find_last_not_of(" \r\n\t") + 1);
    const fs::path snapshot = repository / "snapshots" / commit;
    const bool plain =
        !commit.empty() && commit.find('/') == std::string::npos && commit.find("..") == std::string::npos;
    if (plain && fs::is_directory(snapshot, error)) return snapshot;
  }
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(repository / "snapshots", error)) {
    if (!entry.is_directory(error)) continue;
    if (!newest || entry.last_write_time(error) > fs::last_write_time(*newest, error)) newest = entry.path();
  }
  return newest;
}

// The cache keeps files as links to ../../blobs; a link that leads out of the cache would read what the user never
// named.
void check_links(const fs::path& snapshot, const fs::path& cache) {
  std::error_code error;
  const std::string root = fs::canonical(cache, error).string() + "/";
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(snapshot, error)) {
    if (!entry.is_symlink(error)) continue;
    const fs::path target = fs::canonical(entry.path(), error);
    if (error)
      throw WeightError(entry.path().string(), "is a link to a file that is not there", "fetch the model again");
    if (!target.string().starts_with(root))
      throw WeightError(entry.path().string(), "is a link that leaves the Hugging Face cache");
  }
}

}  // namespace

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {  // its name now, and its former one
    if (const std::string cache = path_variable(name); !cache.empty()) return cache;
  }
  if (const std::string home = path_variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const std::string cache = path_variable("XDG_CACHE_HOME");
  return fs::path(cache.empty() ? home_folder() + "/.cache" : cache) / "huggingface" / "hub";
}

bool is_hub_id(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() ||
      name.find('/', slash + 1) != std::string::npos) {
    return false;
  }
  return name.front() != '.' && name.find("..") == std::string::npos &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || std::string_view("-_./").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

std::string hub_repository_name(const std::string& id) {
  std::string folder = "models--" + id;
  folder.replace(folder.find('/'), 1, "--");
  return folder;
}

fs::path find_model_folder(const std::string& name) {
  std::error_code error;
  if (fs::is_directory(name, error)) return name;
  if (fs::exists(name, error))
    throw WeightError(name, "is a file, and a diffusers folder (with model_index.json) is needed",
                      "make one of it: sdtune convert --model FILE --output FOLDER");
  if (is_bundled_base(name)) return require_bundled_base(name);
  if (!is_hub_id(name))
    throw WeightError(name, "there is no such folder", "give a diffusers folder, or a hub id such as org/name");
  const fs::path repository = hub_cache_folder() / hub_repository_name(name);
  const std::optional<fs::path> snapshot = snapshot_of(repository);
  if (!snapshot) {
    throw WeightError(name, "is neither a folder nor in the Hugging Face cache (looked in " + repository.string() + ")",
                      "fetch it: sdtune fetch " + name);
  }
  check_links(*snapshot, hub_cache_folder());
  return *snapshot;
}

}  // namespace sdtune
