#include "model/pipeline/scheduler_file.h"

#include <cmath>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

fs::path file_in(const fs::path& folder) {
  return folder / "scheduler" / "scheduler_config.json";
}

}  // namespace

void save_scheduler(FileSystem& files, const ModelBundle& bundle, const fs::path& folder) {
  // A null stands for a default that JSON cannot write (minus infinity); diffusers takes its default for an absent key.
  Json scheduler = Json::object();
  for (const auto& [key, value] : bundle.scheduler_config.items()) {
    if (!value.is_null() && !(value.is_number_float() && !std::isfinite(value.get<double>()))) scheduler[key] = value;
  }
  scheduler["_class_name"] = bundle.scheduler_class;
  files.create_directories(folder / "scheduler");
  write_file_atomically(files, file_in(folder), scheduler.dump(2) + "\n");
}

bool replace_scheduler(ModelBundle& bundle, const fs::path& folder) {
  const fs::path path = file_in(folder);
  if (!is_file(path)) return false;
  Json config = read_json(path);
  const bool names_class = config.is_object() && config.contains("_class_name") && config["_class_name"].is_string();
  if (!names_class) throw WeightError(path.string(), "names no class of scheduler (_class_name)");
  bundle.scheduler_class = config["_class_name"].get<std::string>();
  bundle.scheduler_config = std::move(config);
  return true;
}

}  // namespace sdtune::model
