#include "model/generate/generation_metadata.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/files/install_paths.h"
#include "model/files/model_fingerprint.h"
#include "model/files/sha256.h"
#include "model/generate/model_additions.h"
#include "model/lora/lora_hashes.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// Options that name files, alone or with more behind a colon.
constexpr std::array kFileOptions = {"vae", "init_image", "embedding", "lora"};
constexpr std::int64_t kMostAtOnce = 1024;  // images of a batch, as sample's --batch allows

Json json_of_field(const Field& field) {
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

Setting setting_of(const std::string& name, const Json& value, const std::string& where) {
  Setting setting{.name = name, .items = {}, .origin = where + ": " + name};
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
    if (std::find(kFileOptions.begin(), kFileOptions.end(), name) == kFileOptions.end() || value.is_null()) continue;
    for (const Json& item : value.is_array() ? value : Json::array({value})) {
      if (!text_of(item).empty()) values.push_back(text_of(item));
    }
  }
  return values;
}

Json options_json(const GenerateOptions& options) {
  GenerateOptions copy = options;
  copy.lora.clear();
  for (const WeightedLora& lora : options.loras) copy.lora.push_back(lora_text(lora));
  Json json = Json::object();
  for (const Field& field : copy.fields()) {
    if (field.info.in_metadata) json[field.info.name] = json_of_field(field);
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
    problems.push_back({where, "names a file that does not exist any more (got " + value + ")",
                        hash == hashes.end() ? "" : "its SHA-256 was " + hash->second});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Images of a bundled base have its name for a path: its folder is another on each machine.
std::string bundled_base_named(const std::string& name) {
  return find_bundled_base(is_bundled_base(name) ? name : kBundledBase).string();
}

}  // namespace

std::string model_name(const fs::path& folder) {
  return (folder.filename() == "model" ? folder.parent_path() : folder).filename().string();
}

ImageSources read_sources(const fs::path& folder, const std::string& given, const GenerateOptions& options) {
  std::error_code status;
  ImageSources sources;
  sources.model_name = model_name(folder);
  const bool bundled = is_bundled_base(sources.model_name) && folder == find_bundled_base(sources.model_name);
  sources.model = bundled ? "" : given.empty() ? folder.string() : given;
  const bool is_model = fs::exists(folder / "model_index.json", status);
  sources.fingerprint = is_model ? model_fingerprint(folder) : content_hash(folder);
  for (const std::string& value : file_values(options_json(options))) {
    sources.files[value] = content_hash(parse_embedding(value).file);
  }
  for (const WeightedLora& lora : options.loras) sources.loras[lora_text(lora)] = lora_model_hash(lora.file);
  return sources;
}

Json generation_metadata(const GenerateOptions& options, const ImageSources& sources, const ImageBatch& batch) {
  Json metadata = Json::object();
  metadata["version"] = SDTUNE_VERSION;
  metadata["model"] = {{"path", sources.model}, {"name", sources.model_name}, {"fingerprint", sources.fingerprint}};
  metadata["options"] = options_json(options);
  metadata["files"] = sources.files;
  metadata["batch"] = {{"first_seed", batch.first_seed}, {"count", batch.count}};
  return metadata;
}

AppliedMetadata apply_metadata(const Json& metadata, const std::string& where, const Origins& given,
                               GenerateOptions& options) {
  AppliedMetadata applied;
  Origins origins;
  std::vector<Problem> problems;
  Json taken = Json::object();
  try {
    const FieldList fields = options.fields();
    for (const auto& [name, value] : metadata.at("options").items()) {
      if (given.count(name) > 0) continue;
      const Field* field = find_field(fields, name);
      if (field == nullptr || !field->info.in_metadata) {
        applied.warnings.push_back({where, "has an option that this version does not know (got " + name + ")", ""});
        continue;
      }
      taken[name] = value;
      apply_settings(fields, {setting_of(name, value, where)}, origins, problems);
    }
    applied.files = texts_of(metadata.at("files"));
    applied.fingerprint = metadata.at("model").at("fingerprint").get<std::string>();
    applied.batch = {metadata.at("batch").at("first_seed").get<std::int64_t>(),
                     metadata.at("batch").at("count").get<std::int64_t>()};
    const auto path = metadata.at("model").at("path").get<std::string>();
    applied.model = path.empty() ? bundled_base_named(metadata.at("model").at("name").get<std::string>()) : path;
  } catch (const Json::exception& error) {
    throw ConfigError(where, std::string("holds metadata that cannot be read: ") + error.what());
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  require_files(file_values(taken), applied.files, where);
  if (given.count("seed") > 0) applied.batch = {options.seed, 1};
  // All of the batch is generated again. Seeds begin with 0, so that no difference of two overflows.
  const auto [first_seed, count] = applied.batch;
  const bool is_batch = first_seed >= 0 && count >= 1 && count <= kMostAtOnce;
  if (!is_batch || options.seed < first_seed || options.seed - first_seed >= count)
    throw ConfigError(where, "holds metadata whose seed is not in their batch");
  return applied;
}

std::vector<Problem> find_changes(const AppliedMetadata& metadata, const ImageSources& now) {
  const std::string effect = "the new image will differ";
  std::vector<Problem> changes;
  if (!metadata.fingerprint.empty() && metadata.fingerprint != now.fingerprint) {
    changes.push_back({"--model", "is not the model that generated the image (got " + now.model_name + ")", effect});
  }
  for (const auto& [path, hash] : now.files) {
    const auto before = metadata.files.find(path);
    if (before == metadata.files.end() || before->second == hash) continue;
    changes.push_back({path, "has changed since the image was generated", effect});
  }
  return changes;
}

}  // namespace sdtune::model
