#include "train/config/preset.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "model/base/printable.h"
#include "model/files/install_paths.h"

#include "train/config/base_defaults.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMethods[] = {"full", "lora"};
// Family, and what it is called; "" is any other base.
constexpr std::pair<const char*, const char*> kFamilies[] = {
    {"portrait-128", "portrait-128, the bundled base"},
    {"portrait-64", "portrait-64, the bundled base of 64 px"},
    {"sd15", "Stable Diffusion 1.x"},
    {"sd21", "Stable Diffusion 2.x"},
    {"sdxl", "Stable Diffusion XL"},
    {"", "any other base"},
};

// The file's own keys, with their values as config.yaml has them.
std::vector<std::pair<std::string, std::string>> values_in(const fs::path& file) {
  std::vector<Problem> reported_when_used;
  TrainConfig config;
  apply_settings(config.fields(), settings_from_yaml(file, reported_when_used), config.origins, reported_when_used);
  config.preset = file.string();
  return values_of_preset(config);
}

// A base's own file has the same name everywhere, so its folder is named as well.
std::string shown_name(const fs::path& preset) {
  return (is_own_default(preset) ? preset.parent_path().filename() / preset.filename() : preset.filename()).string();
}

}  // namespace

std::vector<Preset> installed_presets() {
  std::vector<Preset> presets;
  for (const std::string method : kMethods) {
    for (const auto& [family, name] : kFamilies) {
      const fs::path file = find_family_defaults(family, method);
      if (file.empty()) continue;
      presets.push_back({file.filename().string(), "--method " + method + ", " + name, values_in(file)});
    }
  }
  return presets;
}

bool is_of_preset(const TrainConfig& config, const std::string& option) {
  const auto origin = config.origins.find(option);
  return !config.preset.empty() && origin != config.origins.end() && origin->second.starts_with(config.preset + ":");
}

std::vector<std::pair<std::string, std::string>> values_of_preset(TrainConfig config) {
  std::vector<std::pair<std::string, std::string>> values;
  if (config.preset.empty()) return values;
  for (const Field& field : config.fields()) {
    if (!is_of_preset(config, field.info.name)) continue;
    values.emplace_back(field.info.name, field_text(field));
  }
  return values;
}

std::string preset_line(const TrainConfig& config) {
  if (config.preset.empty()) return "";
  std::vector<std::string> values;
  for (const auto& [name, value] : values_of_preset(config)) values.push_back(name + " " + value);
  const std::string text = fmt::format("{}", fmt::join(values, ", "));
  // A base's folder and its words may come from anywhere.
  return printable(shown_name(config.preset) + ": " + (text.empty() ? "every value is overridden" : text));
}

}  // namespace sdtune::train
