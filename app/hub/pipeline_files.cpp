#include "app/hub/pipeline_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

constexpr std::string_view kWeights = ".safetensors", kIndexEnding = ".safetensors.index", kJson = ".json";

// "model-00001-of-00002" -> "model".
std::string without_shard(const std::string& stem) {
  constexpr std::string_view kPattern = "-00000-of-00000";
  if (stem.size() < kPattern.size()) return stem;
  const std::string_view end = std::string_view(stem).substr(stem.size() - kPattern.size());
  for (std::size_t i = 0; i < end.size(); ++i) {
    const bool digit = end[i] >= '0' && end[i] <= '9';
    if (kPattern[i] == '0' ? !digit : end[i] != kPattern[i]) return stem;
  }
  return stem.substr(0, stem.size() - kPattern.size());
}

// The variant of a file of weights or of an index of shards: "" for the plain ones; none: it is neither.
std::optional<std::string> variant_of(const std::string& name) {
  std::string stem, behind;
  if (name.ends_with(kWeights)) {
    stem = without_shard(name.substr(0, name.size() - kWeights.size()));
  } else if (const std::size_t at = name.find(kIndexEnding); at != std::string::npos && name.ends_with(kJson)) {
    // The variant stands before .safetensors or behind index.
    stem = name.substr(0, at);
    behind = name.substr(at + kIndexEnding.size(), name.size() - at - kIndexEnding.size() - kJson.size());
  } else {
    return std::nullopt;
  }
  const std::size_t dot = stem.find('.');
  if (!behind.empty()) return behind.substr(1);
  return dot == std::string::npos ? "" : stem.substr(dot + 1);
}

bool is_setting(const std::string& name) {
  return name.ends_with(kJson) || name.ends_with(".txt") || name.ends_with(".model");
}

bool is_licence(const std::string& file) {
  return file.find('/') == std::string::npos && (file.starts_with("LICENSE") || file.starts_with("LICENCE"));
}

bool is_pickle(const std::string& name) {
  return name.ends_with(".bin") || name.ends_with(".ckpt") || name.ends_with(".pt");
}

struct Component {
  std::string name;
  std::vector<std::string> settings, plain, of_variant, pickles;  // paths
  std::set<std::string> variants;                                 // of its weights
};

// Files directly in the component's folder.
Component sort_files(const std::vector<std::string>& files, const std::string& name, const std::string& variant) {
  Component component{.name = name, .settings = {}, .plain = {}, .of_variant = {}, .pickles = {}, .variants = {}};
  for (const std::string& file : files) {
    if (!file.starts_with(name + "/")) continue;
    const std::string rest = file.substr(name.size() + 1);
    if (rest.find('/') != std::string::npos) continue;
    const std::optional<std::string> found = variant_of(rest);
    if (found && found->empty()) component.plain.push_back(file);
    if (found && !found->empty()) component.variants.insert(*found);
    if (found && !variant.empty() && *found == variant) component.of_variant.push_back(file);
    const bool other_framework = rest.find("flax") != std::string::npos || rest.find(".index.") != std::string::npos;
    if (!found && is_setting(rest) && !other_framework) component.settings.push_back(file);
    if (is_pickle(rest) && !rest.starts_with("openvino")) component.pickles.push_back(file);
  }
  return component;
}

// [library, class] of those that the pipeline has; [null, null] of those that it does without.
std::vector<std::string> components_of(const Json& index, const std::vector<std::string>& without) {
  std::vector<std::string> names;
  for (const auto& [name, value] : index.items()) {
    if (value.is_array() && value.size() == 2 && value[0].is_string() && name.find('/') == std::string::npos) {
      names.push_back(name);
    }
  }
  for (const std::string& name : without) {
    if (std::erase(names, name) > 0) continue;
    const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
    throw ConfigError("--without", "is no component of the model (got " + name + "; allowed: " + allowed + ")");
  }
  return names;
}

}  // namespace

std::vector<std::string> pipeline_files(const std::vector<std::string>& files, const Json& index,
                                        const std::string& variant, const std::vector<std::string>& without,
                                        const std::string& id) {
  std::vector<std::string> chosen = {"model_index.json"};
  std::copy_if(files.begin(), files.end(), std::back_inserter(chosen), is_licence);
  bool has_variant = variant.empty();
  for (const std::string& name : components_of(index, without)) {
    const Component component = sort_files(files, name, variant);
    const std::vector<std::string>& weights = component.of_variant.empty() ? component.plain : component.of_variant;
    has_variant = has_variant || !component.of_variant.empty();
    if (weights.empty() && !component.variants.empty()) {
      const std::string there = fmt::format("{}", fmt::join(component.variants, " or "));
      throw ConfigError("--variant",
                        fmt::format("{} has weights of {} only as variant {} (got {})", id, name, there,
                                    variant.empty() ? "none" : variant),
                        "name one, or leave the part out: --without " + name);
    }
    if (weights.empty() && !component.pickles.empty()) {
      const std::string& pickle = component.pickles.front();
      throw WeightError(id + ": " + name, "has no safetensors weights, only " + pickle,
                        "fetch each such file with --file and convert it: sdtune convert --pickle FILE --output "
                        "FILE.safetensors");
    }
    chosen.insert(chosen.end(), component.settings.begin(), component.settings.end());
    chosen.insert(chosen.end(), weights.begin(), weights.end());
  }
  if (!has_variant) throw ConfigError("--variant", id + " has no safetensors of this variant (got " + variant + ")");
  return chosen;
}

}  // namespace sdtune::app
