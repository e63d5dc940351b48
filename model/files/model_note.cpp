#include "model/files/model_note.h"

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/json_file.h"

namespace sdtune {
namespace {

constexpr const char* kFileName = "sdtune.json";

}  // namespace

ModelNote read_model_note(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kFileName;
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return {};
  const Json json = read_json(path);
  if (!json.is_object()) throw WeightError(path.string(), "is not a JSON object");
  JsonObject object(json, path.string());
  return {object.string("trigger", ""), object.boolean("rendered_people", false), object.string("base", ""),
          object.string("base_fingerprint", "")};
}

void write_model_note(FileSystem& files, const ModelNote& note, const std::filesystem::path& folder) {
  Json json = {{"trigger", note.trigger}, {"rendered_people", note.rendered_people}};
  if (!note.base.empty()) {
    json["base"] = valid_text(note.base);  // a path, which need not be UTF-8
    json["base_fingerprint"] = note.base_fingerprint;
  }
  write_file_atomically(files, folder / kFileName, json.dump(2) + "\n");
}

}  // namespace sdtune
