#include "model/files/manifest.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "model/base/json.h"
#include "model/files/json_file.h"
#include "model/files/sha256.h"

namespace sdtune {

namespace fs = std::filesystem;

namespace {

std::optional<Problem> fault_of(const fs::path& folder, const ManifestEntry& entry, PageCache cache) {
  const fs::path path = folder / entry.name;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return Problem{path.string(), "is missing: " + error.message(), ""};
  if (size != entry.size) {
    return Problem{path.string(),
                   "has another size than when it was written (expected " + std::to_string(entry.size) +
                       " bytes, found " + std::to_string(size) + ")",
                   ""};
  }
  const std::string found = sha256_of_file(path, cache);
  if (found == entry.sha256) return std::nullopt;
  return Problem{path.string(), "is damaged: its hash differs (expected " + entry.sha256 + ", found " + found + ")",
                 ""};
}

}  // namespace

Manifest Manifest::of_folder(const fs::path& folder) {
  Manifest manifest;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    if (name == kManifestName) continue;
    manifest.files.push_back({name, entry.file_size(), sha256_of_file(entry.path())});
  }
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const ManifestEntry& a, const ManifestEntry& b) { return a.name < b.name; });
  return manifest;
}

Manifest Manifest::read(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  const Json json = read_json(path);
  JsonObject object(json, path.string());
  if (object.integer("version") != 1) object.fail("version", "is not one that this sdtune reads (allowed: 1)");
  const Json& list = object.raw("files");
  if (!list.is_array()) object.fail("files", "must be a list");
  Manifest manifest;
  for (const Json& item : list) {
    JsonObject file(item, path.string());
    ManifestEntry entry{file.string("name", ""), static_cast<std::uint64_t>(file.integer("size")),
                        file.string("sha256", "")};
    const fs::path relative(entry.name);
    const bool escapes = relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (entry.name.empty() || escapes) file.fail("name", "must lie inside the folder (got '" + entry.name + "')");
    manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

void Manifest::write(FileSystem& file_system, const fs::path& folder) const {
  Json list = Json::array();
  for (const ManifestEntry& entry : files) {
    list.push_back(Json{{"name", entry.name}, {"size", entry.size}, {"sha256", entry.sha256}});
  }
  write_file_atomically(file_system, folder / kManifestName, Json{{"version", 1}, {"files", list}}.dump(1) + "\n");
}

// Files are hashed at the same time, as many as there are cores: one core hashes less than disks deliver.
std::vector<Problem> Manifest::verify(const fs::path& folder, PageCache cache) const {
  std::vector<std::optional<Problem>> found(files.size());
  std::atomic<std::size_t> next = 0;
  const auto verify_files = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) found[i] = fault_of(folder, files[i], cache);
  };
  std::vector<std::future<void>> threads(
      std::min<std::size_t>(files.size(), std::max(1u, std::thread::hardware_concurrency())));
  const std::launch policy = std::launch::async | std::launch::deferred;  // later where no thread can be made
  for (std::future<void>& thread : threads) thread = std::async(policy, verify_files);
  for (std::future<void>& thread : threads) thread.wait();  // they use what is gone after an exception
  for (std::future<void>& thread : threads) thread.get();
  std::vector<Problem> problems;
  for (const std::optional<Problem>& problem : found) {
    if (problem) problems.push_back(*problem);
  }
  return problems;
}

}  // namespace sdtune
