#include "app/hub/push_files.h"

#include <algorithm>
#include <system_error>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/base_name.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"
#include "model/lora/lora_file.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

bool is_model(const fs::path& folder) {
  return is_file(folder / "model_index.json") || is_file(folder / model::kLoraFile);
}

// Its `base` may be a folder of this machine, which is left out.
PushFile note_without_folders(const fs::path& source, const std::string& path) {
  Json note = read_json(source);
  if (note.is_object() && note.contains("base") && note["base"].is_string()) {
    note["base"] = public_base_name(note["base"].get<std::string>());
  }
  PushFile file{.path = path, .source = {}, .text = note.dump(2) + "\n", .size = 0};
  file.size = file.text.size();
  return file;
}

}  // namespace

fs::path find_pushed_model(const fs::path& run) {
  std::error_code error;
  if (!fs::is_directory(run, error))
    throw WeightError(run.string(), "there is no such folder", "name a run, or a model's folder");
  if (is_model(run / "model")) return run / "model";
  if (is_model(run)) return run;
  throw WeightError(
      run.string(),
      "holds no model and no LoRA: neither model/ nor model_index.json nor " + std::string(model::kLoraFile),
      "has the run finished?");
}

std::vector<PushFile> push_files(const fs::path& model) {
  std::vector<PushFile> files;
  const fs::path root = fs::canonical(model);
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    if (at->path().filename().string().starts_with('.')) {
      if (at->is_directory()) at.disable_recursion_pending();
      continue;
    }
    if (at->is_symlink() && !at->is_regular_file()) {
      throw WeightError(at->path().string(), "is a link to a folder, or to nothing", "copy there what it should hold");
    }
    if (!at->is_regular_file()) continue;
    const std::string path = at->path().lexically_relative(root).generic_string();
    if (at->is_symlink() && *fs::canonical(at->path()).lexically_relative(root).begin() == "..") {
      throw WeightError(at->path().string(), "is a link that leaves the model's folder", "copy the file there");
    }
    if (path == "sdtune.json") {
      files.push_back(note_without_folders(at->path(), path));
    } else {
      files.push_back({.path = path, .source = at->path(), .text = {}, .size = at->file_size()});
    }
  }
  std::sort(files.begin(), files.end(), [](const PushFile& a, const PushFile& b) { return a.path < b.path; });
  return files;
}

fs::path find_sheet(const fs::path& run) {
  fs::path newest;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "samples", error)) {
    const fs::path grid = entry.path() / "grid.png";
    if (is_file(grid) && (newest.empty() || grid > newest)) newest = grid;  // steps are padded with zeros
  }
  return newest;
}

}  // namespace sdtune::app
