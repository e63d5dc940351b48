#include "train/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <system_error>

#include "model/files/manifest.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "step-";
constexpr const char* kTemporary = ".tmp";
constexpr std::size_t kDigits = 8;

// The step of "step-00000100", or -1 for any other name.
std::int64_t parse_step(const std::string& name) {
  const std::string prefix = kPrefix;
  if (!name.starts_with(prefix)) return -1;
  const std::string digits = name.substr(prefix.size());
  const bool all_digits = std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  if (digits.size() < kDigits || digits.size() > 18 || !all_digits) return -1;
  return std::stoll(digits);
}

}  // namespace

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return checkpoints / (kPrefix + digits);
}

fs::path temporary_path(const fs::path& checkpoint) {
  return checkpoint.string() + kTemporary;
}

std::vector<CheckpointFolder> list_checkpoints(const fs::path& checkpoints) {
  std::vector<CheckpointFolder> found;
  std::error_code status;  // where it cannot be reached, preflight says why
  if (!fs::is_directory(checkpoints, status)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    const std::int64_t step = parse_step(entry.path().filename().string());
    if (step >= 0 && entry.is_directory()) found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

std::vector<fs::path> list_unfinished(const fs::path& checkpoints) {
  std::vector<fs::path> found;
  if (!fs::is_directory(checkpoints)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kTemporary) && parse_step(entry.path().stem().string()) >= 0) found.push_back(entry.path());
  }
  return found;
}

std::optional<Problem> remove_old_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints,
                                              std::int64_t verified_step, std::optional<std::int64_t> limit) {
  std::optional<Problem> failure;
  const auto attempt = [&](const auto& deletion) {
    try {
      deletion();
    } catch (const StorageError& error) {
      if (!failure) failure = error.problems().front();
    }
  };
  for (const fs::path& unfinished : list_unfinished(checkpoints)) attempt([&] { files.remove_tree(unfinished); });
  if (!limit) return failure;
  std::int64_t kept = 0;
  for (const CheckpointFolder& checkpoint : list_checkpoints(checkpoints)) {
    ++kept;
    if (kept <= *limit || checkpoint.step >= verified_step) continue;
    // Without its manifest it is no checkpoint any more, so a kill in between leaves nothing that could be taken for a
    // whole one.
    attempt([&] {
      if (fs::exists(checkpoint.path / kManifestName)) files.unlink(checkpoint.path / kManifestName);
      files.remove_tree(checkpoint.path);
    });
  }
  return failure;
}

}  // namespace sdtune::train
