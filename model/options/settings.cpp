#include "model/options/settings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/base/json.h"
#include "model/base/printable.h"
#include "model/options/yaml.h"

namespace sdtune {
namespace {

// Options that people know from other trainers and that sdtune refuses on purpose: the reason helps more than a near
// name.
constexpr std::pair<const char*, const char*> kRefused[] = {
    {"fsdp", "is not supported: each rank holds all weights; shard shares out gradients and optimizer states"},
    {"deepspeed",
     "is not supported; shard shares out gradients and optimizer states, and sdtune launch starts the ranks"},
    {"async", "is not supported; checkpoints are written before training goes on"},
    {"enable_xformers_memory_efficient_attention", "is not needed: attention is fused already"},
    {"push_to_hub", "is no option of training: sdtune push sends a finished model to a hub"},
    {"hub_token", "is no option: sdtune push and fetch read HF_TOKEN"},
    // What python -m torch.distributed.launch and deepspeed put behind the words of the program that they start.
    {"local_rank", "is no option: ranks are read from the environment; start them with sdtune launch or torchrun"},
};

std::string refusal_reason(const std::string& name) {
  for (const auto& [refused, reason] : kRefused) {
    const std::string flag = flag_name(refused);
    if (name == refused || "--" + name == flag) return reason;
  }
  return "";
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void apply_setting(const Field& field, const Setting& setting) {
  if (setting.is_null && is_list(field)) {
    set_field(field, "", setting.origin);
  } else if (setting.is_null && is_optional(field)) {
    set_field(field, "null", setting.origin);
  } else if (setting.is_null) {
    throw ConfigError(setting.origin, setting.name + " has no value (allowed: " + field_type(field) + ")",
                      field_type(field) == "string" ? "write \"\" for an empty text" : "");
  } else if (setting.has_mappings && !field.info.takes_mappings) {
    throw ConfigError(setting.origin, setting.name + " is a list of mappings (allowed: " + field_type(field) + ")");
  } else if (setting.is_list) {
    set_field(field, setting.items, setting.origin);
  } else {
    set_field(field, setting.items.empty() ? "" : setting.items.front(), setting.origin);
  }
}

// A mapping of plain values as JSON, every value a text: what an option that is a list of mappings takes. False for
// one that holds anything else.
bool mapping_text(const YamlValue& mapping, std::string& text) {
  Json object = Json::object();
  for (const auto& [key, value] : mapping.entries) {
    if (value.kind == YamlValue::Kind::kNull) continue;
    if (value.kind != YamlValue::Kind::kScalar) return false;
    object[key] = value.text;
  }
  text = object.dump();
  return true;
}

// A YAML value as texts; false (with a problem) for what no option can be.
bool yaml_texts(const YamlValue& value, Setting& setting, std::vector<Problem>& problems) {
  switch (value.kind) {
    case YamlValue::Kind::kNull:
      setting.is_null = true;
      return true;
    case YamlValue::Kind::kScalar:
      setting.items = {value.text};
      return true;
    case YamlValue::Kind::kMapping:
      problems.push_back({setting.origin, setting.name + " is a mapping (allowed: a value or a list)", ""});
      return false;
    case YamlValue::Kind::kSequence:
      break;
  }
  setting.is_list = true;
  for (const YamlValue& item : value.items) {
    std::string text = item.text;
    const bool is_mapping = item.kind == YamlValue::Kind::kMapping;
    setting.has_mappings = setting.has_mappings || is_mapping;
    if (is_mapping ? !mapping_text(item, text) : item.kind != YamlValue::Kind::kScalar) {
      problems.push_back({setting.origin, setting.name + " is a list of something other than plain values", ""});
      return false;
    }
    setting.items.push_back(std::move(text));
  }
  return true;
}

}  // namespace

std::vector<Setting> settings_from_yaml(const std::filesystem::path& file, std::vector<Problem>& problems) {
  YamlValue root;
  try {
    root = read_yaml(file);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    return {};
  }
  if (root.kind == YamlValue::Kind::kNull) return {};
  if (root.kind != YamlValue::Kind::kMapping) {
    problems.push_back({file.string() + ":" + std::to_string(root.line), "must be lines of KEY: VALUE", ""});
    return {};
  }
  std::vector<Setting> settings;
  for (const auto& [key, value] : root.entries) {
    Setting setting;
    setting.name = key;
    setting.origin = file.string() + ":" + std::to_string(value.line);
    if (yaml_texts(value, setting, problems)) settings.push_back(std::move(setting));
  }
  return settings;
}

Problem unknown_setting(const Setting& setting, const FieldList& fields) {
  const bool is_flag = setting.origin.starts_with("--");
  const std::string subject = is_flag ? "unknown option" : "unknown key " + setting.name;
  const std::string reason = refusal_reason(underscored(setting.name));
  if (!reason.empty()) return {setting.origin, is_flag ? reason : setting.name + " " + reason, ""};
  const std::string near = nearest_name(setting.name, field_names(fields));
  if (near.empty()) return {setting.origin, subject, "--help lists all options"};
  return {setting.origin, subject, "did you mean " + (is_flag ? flag_name(near) : near) + "?"};
}

void apply_settings(const FieldList& fields, const std::vector<Setting>& settings, Origins& origins,
                    std::vector<Problem>& problems) {
  std::map<std::string, std::string>
      set_here;  // field -> the key of this file that set it, to catch an alias beside its name
  for (const Setting& setting : settings) {
    const Field* field = find_field(fields, setting.name);
    if (field == nullptr) {
      problems.push_back(unknown_setting(setting, fields));
      continue;
    }
    const bool is_flag = setting.origin.starts_with("--");
    const auto [first, is_new] = set_here.emplace(field->info.name, setting.name);
    if (!is_new && !is_flag) {
      problems.push_back({setting.origin, setting.name + " and " + first->second + " are the same option", ""});
      continue;
    }
    try {
      apply_setting(*field, setting);
      origins[field->info.name] = setting.origin;
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
}

std::string config_to_yaml(const FieldList& fields, const Origins& origins) {
  std::string text;
  std::string group;
  for (const Field& field : fields) {
    if (field.info.group != group) {
      group = field.info.group;
      text += (text.empty() ? "# " : "\n# ") + group + "\n";
    }
    const auto origin = origins.find(field.info.name);
    text += field.info.name + ": " + field_text(field) + "  # " +
            (origin == origins.end() ? "default" : valid_text(printable(origin->second))) +  // of any file's name
            (field.info.is_secret && origin != origins.end() ? ", a secret that is not written here" : "") + "\n";
  }
  return text;
}

}  // namespace sdtune
