#include "app/commands/picture_record.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "app/commands/model_additions.h"
#include "app/commands/picture_file.h"
#include "model/base/model_fingerprint.h"
#include "model/base/sha256.h"
#include "model/base/share_folder.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEmbeddedBase = "models/portrait-64";
// What says where pictures go and which are drawn besides, not what one looks like.
constexpr std::array kNotOfThePicture = {"prompts", "trigger",    "num_images", "batch", "output", "grid",
                                         "compare", "references", "config",     "like",  "model",  "lora_dir"};
// Options that name files, alone or with more behind a colon.
constexpr std::array kFileOptions = {"vae", "init_image", "embedding", "lora"};

template <typename List>
bool is_among(const List& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Json json_of(const Field& field) {
  const auto as_json = [](const auto* value) -> Json {
    using Value = std::remove_cvref_t<decltype(*value)>;
    if constexpr (requires { value->has_value(); }) {
      return value->has_value() ? Json(**value) : Json(nullptr);
    } else {
      return Json(static_cast<const Value&>(*value));
    }
  };
  return std::visit(as_json, field.value);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

train::Setting setting_of(const std::string& name, const Json& value, const std::string& where) {
  train::Setting setting{.name = name, .items = {}, .origin = where + ": " + name};
  setting.is_null = value.is_null();
  setting.is_list = value.is_array();
  if (value.is_array()) {
    for (const Json& item : value) setting.items.push_back(text_of(item));
  } else if (!value.is_null()) {
    setting.items.push_back(text_of(value));
  }
  return setting;
}

// Of a file; of a folder (a VAE, a model around it, a LoRA run) all its weights.
std::string content_hash(const fs::path& path) {
  std::error_code status;
  if (!fs::is_directory(path, status)) return sha256_of_file(path);
  std::vector<fs::path> files;
  for (const fs::path& folder : {path, path / "vae", path / "model"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, status)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::string hashes;
  for (const fs::path& file : files) hashes += sha256_of_file(file);
  return sha256_hex(hashes);
}

std::vector<std::string> file_values(const Json& options) {
  std::vector<std::string> values;
  for (const auto& [name, value] : options.items()) {
    if (!is_among(kFileOptions, name) || value.is_null()) continue;
    for (const Json& item : value.is_array() ? value : Json::array({value})) {
      if (!text_of(item).empty()) values.push_back(text_of(item));
    }
  }
  return values;
}

Json options_json(const SampleOptions& options) {
  SampleOptions copy = options;
  Json json = Json::object();
  for (const Field& field : copy.fields()) {
    if (!is_among(kNotOfThePicture, field.info.name)) json[field.info.name] = json_of(field);
  }
  return json;
}

std::map<std::string, std::string> texts_of(const Json& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : object.items()) texts[name] = text_of(value);
  return texts;
}

// Of the options that flags have not set.
void require_files(const std::vector<std::string>& values, const std::map<std::string, std::string>& hashes,
                   const std::string& where) {
  std::vector<Problem> problems;
  std::error_code status;
  for (const std::string& value : values) {
    if (fs::exists(parse_embedding(value).file, status)) continue;
    const auto hash = hashes.find(value);
    problems.push_back({where, "names a file that is not there any more (got " + value + ")",
                        hash == hashes.end() ? "" : "its SHA-256 was " + hash->second});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

DrawingSources read_sources(const fs::path& folder, const SampleOptions& options) {
  std::error_code status;
  DrawingSources sources;
  const bool embedded = folder == find_shared_file(kEmbeddedBase);
  sources.model = embedded ? "" : options.model.empty() ? folder.string() : options.model;
  sources.model_name = model_name(folder);
  const bool is_model = fs::exists(folder / "model_index.json", status);
  sources.fingerprint = is_model ? model_fingerprint(folder) : content_hash(folder);
  for (const std::string& value : file_values(options_json(options))) {
    sources.files[value] = content_hash(parse_embedding(value).file);
  }
  return sources;
}

Json picture_record(const SampleOptions& options, const DrawingSources& sources, const DrawnBatch& batch) {
  Json record = Json::object();
  record["version"] = SDTUNE_VERSION;
  record["model"] = {{"path", sources.model}, {"name", sources.model_name}, {"fingerprint", sources.fingerprint}};
  record["options"] = options_json(options);
  record["files"] = sources.files;
  record["batch"] = {{"first_seed", batch.first_seed}, {"count", batch.count}};
  return record;
}

AppliedRecord apply_record(const Json& record, const std::string& where, const train::Origins& given,
                           SampleOptions& options) {
  AppliedRecord applied;
  train::Origins origins;
  std::vector<Problem> problems;
  Json taken = Json::object();
  try {
    const FieldList fields = options.fields();
    for (const auto& [name, value] : record.at("options").items()) {
      if (given.count(name) > 0) continue;
      if (find_field(fields, name) == nullptr || is_among(kNotOfThePicture, name)) {
        applied.warnings.push_back({where, "has an option that this version does not know (got " + name + ")", ""});
        continue;
      }
      taken[name] = value;
      train::apply_settings(fields, {setting_of(name, value, where)}, origins, problems);
    }
    applied.files = texts_of(record.at("files"));
    applied.fingerprint = record.at("model").at("fingerprint").get<std::string>();
    applied.batch = {record.at("batch").at("first_seed").get<std::int64_t>(),
                     record.at("batch").at("count").get<std::int64_t>()};
    const auto path = record.at("model").at("path").get<std::string>();
    if (given.count("model") == 0) options.model = path.empty() ? find_shared_file(kEmbeddedBase).string() : path;
  } catch (const Json::exception& error) {
    throw ConfigError(where, std::string("holds no record that can be read: ") + error.what());
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  require_files(file_values(taken), applied.files, where);
  if (given.count("seed") > 0) applied.batch = {options.seed, 1};
  const std::int64_t place = options.seed - applied.batch.first_seed;
  if (place < 0 || place >= applied.batch.count)
    throw ConfigError(where, "holds a record whose seed is not in its batch");
  return applied;
}

std::vector<Problem> find_changes(const AppliedRecord& record, const DrawingSources& now) {
  std::vector<Problem> changes;
  if (!record.fingerprint.empty() && record.fingerprint != now.fingerprint) {
    changes.push_back({"--model", "is not the model that the picture was drawn with (got " + now.model_name + ")",
                       "the new picture will be another one"});
  }
  for (const auto& [path, hash] : now.files) {
    const auto before = record.files.find(path);
    if (before == record.files.end() || before->second == hash) continue;
    changes.push_back({path, "is another file than when the picture was drawn", "the new picture will be another one"});
  }
  return changes;
}

}  // namespace sdtune::app
