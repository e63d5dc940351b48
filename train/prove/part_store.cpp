#include "train/prove/part_store.h"

#include <system_error>
#include <utility>

#include "model/base/error.h"
#include "model/files/json_file.h"

namespace sdtune::train {

namespace {

std::string text_of(const Json& identity, const std::string& key) {
  return identity.is_object() && identity.contains(key) && identity.at(key).is_string()
             ? identity.at(key).get<std::string>()
             : "nothing";
}

void refuse_another(const std::filesystem::path& root, const Json& found, const Json& identity) {
  for (const auto& [name, value] : identity.items()) {
    if (text_of(found, name) == value.get<std::string>()) continue;
    throw ConfigError("--output",
                      root.string() + " holds the proof of another " + name + " (there: " + text_of(found, name) +
                          "; now: " + value.get<std::string>() + ")",
                      "name another folder with --output");
  }
}

}  // namespace

PartStore::PartStore(FileSystem& files, std::filesystem::path root, const Json& identity)
    : files_(files), root_(std::move(root)) {
  const std::filesystem::path file = root_ / "identity.json";
  std::error_code absent;
  if (is_file(file)) {
    refuse_another(root_, read_json(file), identity);
  } else if (std::filesystem::exists(root_) && !std::filesystem::is_empty(root_, absent)) {
    throw ConfigError("--output", root_.string() + " holds something else than a proof",
                      "name an empty or a new folder");
  }
  for (const char* folder : {"parts", "work"}) files_.create_directories(root_ / folder);
  if (!is_file(file)) write_file_atomically(files_, file, identity.dump(1) + "\n");
}

std::optional<PartResult> PartStore::find(const std::string& part) const {
  const std::filesystem::path file = file_of(part);
  if (!is_file(file)) return std::nullopt;
  PartResult result = part_from_json(read_json(file), file.string());
  if (result.status == PartStatus::kSkipped) return std::nullopt;
  return result;
}

void PartStore::keep(const PartResult& result) const {
  write_file_atomically(files_, file_of(result.name), part_json(result).dump(1) + "\n");
}

}  // namespace sdtune::train
