#include "app/launch/restart_words.h"

#include <algorithm>
#include <system_error>

namespace sdtune::app {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCheckpointPrefix = "step-";

bool is_checkpoint_name(const std::string& name) {
  if (!name.starts_with(kCheckpointPrefix)) return false;
  const std::string digits = name.substr(std::string(kCheckpointPrefix).size());
  return !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> restart_words(std::vector<std::string> words, const AttemptState& state) {
  if (state.overwrite && !state.has_run) return words;
  if (state.overwrite) words.emplace_back("--overwrite=false");
  const std::string& given = state.resume_from_checkpoint;
  if (given.empty() || given == "auto") {
    words.emplace_back("--resume-from-checkpoint=auto");
  } else if (given != "latest" && state.has_checkpoint) {
    words.emplace_back("--resume-from-checkpoint=latest");
  }
  return words;
}

bool has_whole_checkpoint(const fs::path& checkpoints) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, none)) {
    const bool is_named = is_checkpoint_name(entry.path().filename().string());
    if (is_named && fs::exists(entry.path() / "manifest.json", none)) return true;
  }
  return false;
}

}  // namespace sdtune::app
