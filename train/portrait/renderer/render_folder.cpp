#include "train/portrait/renderer/render_folder.h"

#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"

namespace sdtune::train::portrait {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLabels = "labels.jsonl";

bool is_there(const fs::path& path) {
  std::error_code status;
  return fs::symlink_status(path, status).type() != fs::file_type::not_found;
}

// The image that a line of labels.jsonl is about; nothing for a line that was cut short, or names no file of the
// folder itself.
std::optional<std::string> image_of(const std::string& line) {
  const Json label = Json::parse(line, nullptr, false);
  if (!label.is_object() || !label.contains("file") || !label["file"].is_string()) return std::nullopt;
  const std::string file = label["file"].get<std::string>();
  if (fs::path(file).filename() != file || !file.ends_with(".png")) return std::nullopt;
  return file;
}

void write_text(OutputFile& file, const std::string& text) {
  file.write(std::as_bytes(std::span(text)));
}

}  // namespace

RenderFolder::RenderFolder(FileSystem& files, fs::path folder, bool overwrite)
    : files_(files), folder_(std::move(folder)) {
  const fs::path labels = folder_ / kLabels, unfinished = partial_name(labels);
  std::error_code status;
  if (is_there(folder_) && !fs::is_directory(folder_, status)) throw ConfigError(folder_.string(), "is not a folder");
  if (is_there(folder_) && !fs::is_empty(folder_, status)) {
    if (!overwrite) {
      throw ConfigError(folder_.string(), "is not empty",
                        "name another folder with --output, or replace an earlier render with --overwrite");
    }
    remove_listed_files(labels);
    remove_listed_files(unfinished);
  }
  files_.create_directories(folder_);
  labels_ = files_.create(unfinished);
}

void RenderFolder::remove_listed_files(const fs::path& labels) {
  std::ifstream lines(labels);
  if (!lines) return;
  for (std::string line; std::getline(lines, line);) {
    const std::optional<std::string> image = image_of(line);
    if (!image) continue;
    const fs::path path = folder_ / *image;
    for (const fs::path& written : {path, fs::path(path).replace_extension(".txt")}) {
      if (is_there(written)) files_.unlink(written);
    }
  }
  files_.unlink(labels);
}

void RenderFolder::write_new(const fs::path& path, const std::string& content) {
  if (is_there(path)) throw ConfigError(path.string(), "is there already, and no render wrote it", "move it away");
  const std::unique_ptr<OutputFile> file = files_.create(path);
  write_text(*file, content);
  file->close();
}

void RenderFolder::add(const std::string& name, const std::string& png, const std::string& caption,
                       const std::string& label) {
  write_text(*labels_, label + "\n");
  write_new(folder_ / (name + ".png"), png);
  if (!caption.empty()) write_new(folder_ / (name + ".txt"), caption + "\n");
}

fs::path RenderFolder::finish() {
  const fs::path labels = folder_ / kLabels;
  labels_->sync();
  labels_->close();
  files_.rename(partial_name(labels), labels);
  files_.sync_directory(folder_);
  return labels;
}

}  // namespace sdtune::train::portrait
