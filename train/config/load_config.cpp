#include "train/config/load_config.h"

#include "model/base/hub_cache.h"
#include "model/base/share_folder.h"
#include "train/config/base_defaults.h"

namespace sdtune::train {
namespace {

constexpr const char* kEmbeddedBase = "models/portrait-64";

// Where the base's defaults are looked for: needs what the user said, read once without keeping the problems.
std::filesystem::path chosen_defaults(const std::vector<Setting>& file_settings, const std::vector<Setting>& flags) {
  TrainConfig chosen;
  std::vector<Problem> reported_later;
  apply_settings(chosen.fields(), file_settings, chosen.origins, reported_later);
  apply_settings(chosen.fields(), flags, chosen.origins, reported_later);
  try {
    const std::filesystem::path folder =
        chosen.run.base.empty() ? find_shared_file(kEmbeddedBase) : find_model_folder(chosen.run.base);
    return folder.empty() ? folder : find_base_defaults(folder, chosen.run.method);
  } catch (const WeightError&) {
    return {};  // no such base: preflight says so
  }
}

}  // namespace

LoadedConfig load_train_config(const std::filesystem::path& config_file, const std::vector<Setting>& flags) {
  LoadedConfig loaded;
  std::vector<Setting> file_settings;
  if (!config_file.empty()) file_settings = settings_from_yaml(config_file, loaded.problems);
  std::vector<Setting> base_settings;
  const std::filesystem::path defaults = chosen_defaults(file_settings, flags);
  if (!defaults.empty()) base_settings = settings_from_yaml(defaults, loaded.problems);

  const FieldList fields = loaded.config.fields();
  apply_settings(fields, base_settings, loaded.config.origins, loaded.problems);
  apply_settings(fields, file_settings, loaded.config.origins, loaded.problems);
  apply_settings(fields, flags, loaded.config.origins, loaded.problems);
  if (loaded.config.run.base.empty()) {
    loaded.config.run.base = find_shared_file(kEmbeddedBase).string();
    if (!loaded.config.run.base.empty()) loaded.config.origins["base"] = "embedded base";
  }
  return loaded;
}

}  // namespace sdtune::train
