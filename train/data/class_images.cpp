#include "train/data/class_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/sha256.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kPrefix = "class-";

Json settings_json(const ClassImageSettings& settings) {
  return {{"prompt", settings.prompt},
          {"base", settings.base_hash},
          {"resolution", settings.resolution},
          {"seed", settings.seed},
          {"sampler", settings.sampler}};
}

// class-00007-<8 hex digits of the settings>.png: other settings are other names, so old images are never mistaken
// for new ones, with or without a manifest.
fs::path generated_file(const fs::path& folder, std::int64_t index, const std::string& key) {
  return folder / fmt::format("{}{:05}-{}.png", kPrefix, index, key);
}

std::string settings_key(const ClassImageSettings& settings) {
  return sha256_hex(settings_json(settings).dump()).substr(0, 8);
}

// Whether the name is one of generated_file(); the user's own may begin with "class-", too.
bool is_generated(const fs::path& path) {
  static const std::regex pattern(std::string(kPrefix) + R"(\d{5,}-[0-9a-f]{8}\.png)");
  return std::regex_match(path.filename().string(), pattern);
}

// File name to hash, of a manifest that is there and readable; a damaged one only costs the comparison.
std::map<std::string, std::string> listed_hashes(const fs::path& folder) {
  std::map<std::string, std::string> hashes;
  std::error_code error;
  if (!fs::exists(folder / kManifest, error)) return hashes;
  const Json manifest = Json::parse(read_file(folder / kManifest), nullptr, false);
  if (!manifest.is_object() || !manifest.contains("images") || !manifest["images"].is_array()) return hashes;
  for (const Json& entry : manifest["images"]) {
    if (!entry.is_object() || !entry.contains("file") || !entry.contains("sha256")) continue;
    if (entry["file"].is_string() && entry["sha256"].is_string()) {
      hashes[entry["file"].get<std::string>()] = entry["sha256"].get<std::string>();
    }
  }
  return hashes;
}

// Whether an image of ours is there, whole, and as the manifest has it.
bool is_valid(const fs::path& path, const std::map<std::string, std::string>& hashes) {
  if (!is_file(path)) return false;
  try {
    const std::string bytes = read_file(path);
    model::verify_image(bytes, path.string());
    const auto listed = hashes.find(path.filename().string());
    return listed == hashes.end() || listed->second == sha256_hex(bytes);
  } catch (const DataError&) {
    return false;  // it is generated again
  }
}

}  // namespace

std::vector<fs::path> own_class_images(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  if (fs::is_directory(folder / kManifest, error)) {
    throw DataError((folder / kManifest).string(),
                    "is a folder, and the class images are listed in a file of this name", "rename it");
  }
  bool has_any = false;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_file = at->is_regular_file(error);
    has_any = has_any || (is_file && !is_generated(at->path()) && name != kManifest && !name.starts_with('.'));
  }
  std::vector<fs::path> images;
  if (!has_any) return images;
  const PhotoFolder found = scan_photos_if_any(folder, "", false);
  std::vector<Problem> bad;
  for (const Problem& problem : found.bad) {
    // A damaged image of ours is generated again; the user's own is for the user to mend.
    if (!is_generated(problem.where)) bad.push_back(problem);
  }
  if (!bad.empty()) throw DataError(bad);
  for (const Photo& photo : found.photos) {
    if (!is_generated(photo.path)) images.push_back(photo.path);
  }
  return images;
}

bool has_generated_class_images(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_generated(at->path())) return true;
  }
  return false;
}

ClassImagePlan plan_class_images(const fs::path& folder, std::int64_t count, const ClassImageSettings& settings) {
  ClassImagePlan plan;
  plan.files = own_class_images(folder);
  if (static_cast<std::int64_t>(plan.files.size()) > count) plan.files.resize(static_cast<std::size_t>(count));
  plan.own = static_cast<std::int64_t>(plan.files.size());
  const std::map<std::string, std::string> hashes = listed_hashes(folder);
  const std::string key = settings_key(settings);
  for (std::int64_t index = plan.own; index < count; ++index) {
    plan.files.push_back(generated_file(folder, index, key));
    if (!is_valid(plan.files.back(), hashes)) plan.missing.push_back(index);
  }
  return plan;
}

void generate_class_images(FileSystem& files, const ClassImagePlan& plan, const ClassImageSettings& settings,
                           const RankShare& share, const GenerateClassImages& generate,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  std::vector<std::int64_t> mine;
  std::copy_if(plan.missing.begin(), plan.missing.end(), std::back_inserter(mine),
               [&](std::int64_t index) { return index % share.ranks == share.rank; });
  if (mine.empty()) return;
  files.create_directories(plan.files.at(static_cast<std::size_t>(mine.front())).parent_path());
  const auto batch = static_cast<std::size_t>(std::max<std::int64_t>(share.batch, 1));
  for (std::size_t begin = 0; begin < mine.size(); begin += batch) {
    const std::size_t end = std::min(begin + batch, mine.size());
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = begin; i < end; ++i) seeds.push_back(settings.seed + static_cast<std::uint64_t>(mine[i]));
    const std::vector<Image> images = generate(seeds);
    if (images.size() != seeds.size()) throw std::logic_error("as many images as seeds must be generated");
    for (std::size_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::size_t>(mine[i]);
      model::write_png(files, plan.files.at(index), images[i - begin],
                       {{"prompt", settings.prompt}, {"seed", std::to_string(seeds[i - begin])}});
    }
    if (progress) progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(mine.size()));
  }
}

void write_class_manifest(FileSystem& files, const fs::path& folder, const ClassImagePlan& plan,
                          const ClassImageSettings& settings) {
  Json manifest = {{"version", 1}};
  manifest.update(settings_json(settings));
  manifest["images"] = Json::array();
  std::vector<Problem> missing;
  for (std::size_t index = 0; index < plan.files.size(); ++index) {
    const fs::path& path = plan.files[index];
    if (!is_file(path)) {
      missing.push_back({path.string(), "this class image was not generated", ""});
      continue;
    }
    Json entry = {{"file", path.filename().string()}, {"sha256", sha256_of_file(path)}};
    if (static_cast<std::int64_t>(index) >= plan.own) entry["seed"] = settings.seed + index;
    manifest["images"].push_back(std::move(entry));
  }
  if (!missing.empty()) throw DataError(missing);
  write_file_atomically(files, folder / kManifest, manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace sdtune::train
