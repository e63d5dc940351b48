#include "model/pipeline/scheduler_file.h"

#include <cmath>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoiseKeys[] = {"num_train_timesteps", "beta_start",    "beta_end",
                                      "beta_schedule",       "trained_betas", "prediction_type"};

fs::path file_in(const fs::path& folder) {
  return folder / "scheduler" / "scheduler_config.json";
}

}  // namespace

void save_scheduler(FileSystem& files, const ModelBundle& bundle, const fs::path& folder) {
  // Not what is a default of the class: another class that reads the file must not take it for given, as it does not of
  // the config itself. But always the noise schedule, which training reads without knowing the class. A null stands for
  // a default that JSON cannot write (minus infinity). diffusers takes its default for an absent key.
  Json kept = given_keys(bundle.scheduler_config);
  for (const char* key : kNoiseKeys) {
    if (bundle.scheduler_config.contains(key)) kept[key] = bundle.scheduler_config[key];
  }
  Json scheduler = Json::object();
  for (const auto& [key, value] : kept.items()) {
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
