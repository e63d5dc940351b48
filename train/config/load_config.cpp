#include "train/config/load_config.h"

#include <algorithm>
#include <utility>

#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/install_paths.h"
#include "train/config/base_defaults.h"

namespace sdtune::train {
namespace {

// What the user gave in file and flags, read once without keeping the problems: it decides which preset applies.
TrainConfig chosen_by_user(const std::vector<Setting>& file_settings, const std::vector<Setting>& flags) {
  TrainConfig chosen;
  std::vector<Problem> reported_later;
  apply_settings(chosen.fields(), file_settings, chosen.origins, reported_later);
  apply_settings(chosen.fields(), flags, chosen.origins, reported_later);
  return chosen;
}

std::filesystem::path defaults_of_base(const RunOptions& chosen) {
  try {
    const std::filesystem::path folder = chosen.base.empty() ? find_bundled_base() : find_model_folder(chosen.base);
    return folder.empty() ? folder : find_base_defaults(folder, chosen.method);
  } catch (const WeightError&) {
    return {};  // no such base: preflight says so
  }
}

// A file of the user's, or one of the installed presets by its name.
std::filesystem::path find_config(const std::filesystem::path& given) {
  if (is_file(given) || given.has_parent_path()) return given;
  for (const char* ending : {"", ".yaml"}) {
    const std::filesystem::path installed = find_shared_file(("configs" / given).concat(ending));
    if (!installed.empty()) return installed;
  }
  return given;
}

bool names_a_rate(const Setting& setting) {
  std::string name = setting.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name == "learning_rate" || name == "text_encoder_lr";
}

// Prodigy estimates the step size itself and multiplies it by the rate, so the rate of a preset does not apply to it.
void drop_rates_for_prodigy(const TrainConfig& chosen, std::vector<Setting>& base_settings, TrainConfig& config) {
  if (chosen.optim.chosen_optimizer() != "prodigy") return;
  std::erase_if(base_settings, names_a_rate);
  config.optim.learning_rate = 1;
  config.origins["learning_rate"] = "optimizer: prodigy";
}

// An earlier number of steps, of a preset or a file, must not hide the epochs that the user asked for later.
void drop_steps_for_epochs(const TrainConfig& chosen, std::vector<Setting>& earlier) {
  if (!chosen.run.num_train_epochs || chosen.run.max_train_steps) return;
  std::erase_if(earlier, [](const Setting& setting) {
    return setting.name == "max_train_steps" || setting.name == "max-train-steps";
  });
}

bool is_of(const FieldList& fields, const Setting& setting, const std::string& option) {
  const Field* field = find_field(fields, setting.name);
  return field != nullptr && field->info.name == option;
}

// An option, and another one that decides the same and wins over it.
constexpr std::pair<const char*, const char*> kReplaces[] = {{"center_crop", "crop_style"},
                                                             {"optimizer", "use_8bit_adam"}};

// What a preset or a file says must not hide what the user gave later under the option's other name.
void drop_replaced(const FieldList& fields, const std::vector<Setting>& later, std::vector<Setting>& earlier) {
  for (const auto& [option, other] : kReplaces) {
    const bool is_given = std::any_of(later.begin(), later.end(), [&, name = option](const Setting& setting) {
      return is_of(fields, setting, name);
    });
    if (is_given) std::erase_if(earlier, [&, name = other](const Setting& s) { return is_of(fields, s, name); });
  }
}

// What the defaults in a model's folder may not say, which may come from anywhere: they say how to train, and not what
// is run, which servers hear of it, or which files and folders of the user's are read, written or deleted.
constexpr const char* kOfTheUserAlone[] = {
    "base",
    "output",
    "overwrite",
    "images",
    "concepts",
    "class_data_dir",
    "validation_data_dir",
    "cache_dir",
    "face_model",
    "identity_model",
    "resume_from_checkpoint",
    "report_to",
    "report_model",
    "tracker_project_name",
    "tracker_run_name",
    "on_finish",
    "notify",
    "preemption",
    "preemption_address",
};

// Of the defaults in a base's own folder; those of the installation come with the program.
void take_out_what_users_say(const FieldList& fields, std::vector<Setting>& settings, std::vector<Problem>& problems) {
  for (const char* option : kOfTheUserAlone) {
    std::erase_if(settings, [&](const Setting& setting) {
      if (!is_of(fields, setting, option)) return false;
      problems.push_back({setting.origin, std::string(option) + " is not for the defaults of a model to say",
                          "give it yourself, by a flag or --config"});
      return true;
    });
  }
}

// `find_defaults`: RunOptions -> the YAML file of defaults, or an empty path.
template <typename FindDefaults>
LoadedConfig load(const std::filesystem::path& config_file, const std::vector<Setting>& flags,
                  const FindDefaults& find_defaults) {
  LoadedConfig loaded;
  const FieldList fields = loaded.config.fields();
  std::vector<Setting> file_settings;
  if (!config_file.empty()) file_settings = settings_from_yaml(find_config(config_file), loaded.problems);
  drop_replaced(fields, flags, file_settings);
  drop_steps_for_epochs(chosen_by_user({}, flags), file_settings);
  std::vector<Setting> base_settings;
  const TrainConfig chosen = chosen_by_user(file_settings, flags);
  const std::filesystem::path defaults = find_defaults(chosen.run);
  if (!defaults.empty()) base_settings = settings_from_yaml(defaults, loaded.problems);
  if (is_own_default(defaults)) take_out_what_users_say(fields, base_settings, loaded.problems);
  loaded.config.preset = defaults.string();
  drop_rates_for_prodigy(chosen, base_settings, loaded.config);
  drop_steps_for_epochs(chosen, base_settings);
  drop_replaced(fields, file_settings, base_settings);
  drop_replaced(fields, flags, base_settings);

  apply_settings(fields, base_settings, loaded.config.origins, loaded.problems);
  apply_settings(fields, file_settings, loaded.config.origins, loaded.problems);
  apply_settings(fields, flags, loaded.config.origins, loaded.problems);
  return loaded;
}

}  // namespace

LoadedConfig load_train_config(const std::filesystem::path& config_file, const std::vector<Setting>& flags) {
  LoadedConfig loaded = load(config_file, flags, defaults_of_base);
  if (loaded.config.run.base.empty()) {
    loaded.config.run.base = find_bundled_base().string();
    if (!loaded.config.run.base.empty()) loaded.config.origins["base"] = "bundled base";
  }
  return loaded;
}

LoadedConfig load_train_config_for(const std::string& family, const std::filesystem::path& config_file,
                                   const std::vector<Setting>& flags) {
  return load(config_file, flags,
              [&](const RunOptions& chosen) { return find_family_defaults(family, chosen.method); });
}

}  // namespace sdtune::train
