// The inspections of runs, checkpoints and images, and which inspection a path gets.
#include <algorithm>
#include <system_error>

#include "app/inspect/inspect_command.h"
#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/image/image_header.h"
#include "model/lora/lora_model.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/data/photo_folder.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& folder, const char* name) {
  return is_file(folder / name);
}

Json lines(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems) list.push_back(problem.line());
  return list;
}

Json inspect_file(const fs::path& file) {
  std::string suffix = file.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  for (const char* image : {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".heic", ".heif"}) {
    if (suffix == image) return inspect_image(file);
  }
  return inspect_safetensors(file);  // which refuses every other format by its content
}

}  // namespace

Json inspect_checkpoint(const fs::path& folder) {
  Json json;
  json["kind"] = "checkpoint";
  const std::vector<Problem> faults = train::checkpoint_faults(folder);
  json["valid"] = faults.empty();
  if (faults.empty()) {
    const train::RunState state = train::read_run_state(folder);
    json["step"] = state.step;
    json["effective_batch"] = state.effective_batch;
    json["attempt"] = state.attempt;
    json["weights"] = inspect_safetensors(folder / train::kWeightsFile);
    json["weights"].erase("kind");
  }
  json["problems"] = lines(faults);
  return json;
}

Json inspect_run(const fs::path& folder) {
  Json json;
  json["kind"] = "run folder";
  const bool is_lora = model::is_lora_folder(folder / "model");
  json["finished"] = is_lora || has_file(folder / "model", "model_index.json");
  Json checkpoints = Json::array();
  for (const train::CheckpointFolder& checkpoint : train::list_checkpoints(folder / "checkpoints")) {
    checkpoints.push_back({{"step", checkpoint.step}, {"valid", train::checkpoint_faults(checkpoint.path).empty()}});
  }
  json["checkpoints"] = std::move(checkpoints);
  if (json["finished"] == true) {
    json["model"] = is_lora ? inspect_lora_folder(folder / "model") : inspect_model_folder(folder / "model");
  }
  return json;
}

Json inspect_photo_folder(const fs::path& folder) {
  const train::PhotoFolder found = train::scan_photos(folder, "", true);
  Json json;
  json["kind"] = "image folder";
  json["images"] = found.photos.size();
  Json photos = Json::array();
  for (const train::Photo& photo : found.photos) {
    Json entry{{"file", photo.path.filename().string()}, {"width", photo.width}, {"height", photo.height}};
    if (!photo.caption.empty()) entry["caption"] = photo.caption;
    photos.push_back(std::move(entry));
  }
  json["photos"] = std::move(photos);
  json["problems"] = lines(found.bad);
  json["warnings"] = lines(found.warnings);
  json["left_out"] = lines(found.left_out);
  return json;
}

Json inspect_image(const fs::path& file) {
  const model::ImageInfo info = model::probe_image(read_file(file), file.string());
  Json json;
  json["kind"] = "picture";
  json["format"] = model::format_name(info.format);
  json["width"] = info.width;
  json["height"] = info.height;
  json["orientation"] = info.orientation;
  return json;
}

Json inspect_path(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status)) {
    throw DataError(path.string(), status ? "cannot be read: " + status.message() : "is not there");
  }
  if (!fs::is_directory(path, status)) return inspect_file(path);
  if (has_file(path, "model_index.json")) return inspect_model_folder(path);
  if (model::is_lora_folder(path)) return inspect_lora_folder(path);
  if (has_file(path, train::kStateFile)) return inspect_checkpoint(path);
  if (has_file(path, "run.json") || has_file(path, "config.yaml")) return inspect_run(path);
  if (has_file(path, "config.json")) return inspect_part_folder(path);
  return inspect_photo_folder(path);
}

}  // namespace sdtune::app
