#include "train/data/metadata_file.h"

#include <sstream>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/data/caption_file.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kMaxMetadataBytes = std::size_t{64} << 20;
constexpr int kMostLevels = 8;  // a note has two

// What is nested deeper is left out: a million levels would fill the stack where an error shows them.
bool is_shallow(int depth, Json::parse_event_t, const Json&) {
  return depth < kMostLevels;
}

model::ImageBox read_box(const Json& value, const std::string& where) {
  const bool is_box = value.is_array() && value.size() == 4 && value[0].is_number() && value[1].is_number() &&
                      value[2].is_number() && value[3].is_number();
  if (!is_box) throw DataError(where, "face must be [left, top, width, height] (got " + value.dump() + ")");
  const model::ImageBox box{value[0], value[1], value[2], value[3]};
  if (box.width > 0 && box.height > 0) return box;
  throw DataError(where, "face is empty (got " + value.dump() + "; allowed: [left, top, width, height] in px)");
}

void read_line(const std::string& line, const std::string& where, std::map<std::string, PhotoNote>& notes) {
  const Json object = Json::parse(line, is_shallow, /*allow_exceptions=*/false);
  if (!object.is_object()) throw DataError(where, "is no JSON object", "write {\"file_name\": ..., \"text\": ...}");
  if (!object.contains("file_name") || !object["file_name"].is_string()) throw DataError(where, "has no file_name");
  PhotoNote note;
  if (object.contains("text")) {
    if (!object["text"].is_string()) throw DataError(where, "text must be a string");
    note.text = clean_caption(object["text"].get<std::string>(), where);
  }
  if (object.contains("face")) note.face = read_box(object["face"], where);
  const std::string file = object["file_name"].get<std::string>();
  if (!notes.emplace(file, std::move(note)).second) throw DataError(where, "names " + file + " once more");
}

}  // namespace

std::map<std::string, PhotoNote> read_metadata(const std::filesystem::path& folder, std::vector<Problem>& problems) {
  std::map<std::string, PhotoNote> notes;
  const std::filesystem::path path = folder / kMetadataFile;
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return notes;
  std::string content;
  try {
    content = read_file(path, kMaxMetadataBytes);
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  std::istringstream lines(content);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      read_line(line, path.string() + ":" + std::to_string(number), notes);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  return notes;
}

}  // namespace sdtune::train
