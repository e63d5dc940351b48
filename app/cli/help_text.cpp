#include "app/cli/help_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace sdtune::app {
namespace {

constexpr std::size_t kIndent = 32;  // where the explanations begin

// Fields by group, groups in the order of their first field. A struct that another one extends may come back to a
// group.
std::vector<std::pair<std::string, std::vector<const Field*>>> grouped(const FieldList& fields) {
  std::vector<std::pair<std::string, std::vector<const Field*>>> groups;
  for (const Field& field : fields) {
    const std::string name = field.info.group.empty() ? "Options" : field.info.group;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(&field);
  }
  return groups;
}

std::string placeholder(const Field& field) {
  if (!field.info.placeholder.empty()) return field.info.placeholder;
  const std::string type = field_type(field);
  if (type == "int") return "N";
  if (type == "float") return "X";
  return type == "bool" ? "" : "TEXT";
}

// What happens when the option is not given. An empty text or an unset optional is explained by the help itself.
std::string default_text(const Field& field) {
  const std::string text = field_text(field);
  return text == "null" || text == "\"\"" || text == "[]" ? "" : text;
}

bool is_set_by_any(const std::vector<Preset>& presets, const std::string& option) {
  return std::any_of(presets.begin(), presets.end(),
                     [&](const Preset& preset) { return preset.value_of(option) != nullptr; });
}

// "[default: 4, or as the base's preset sets; x >= 1; steps]"
std::string details(const Field& field, const std::vector<Preset>& presets) {
  std::vector<std::string> parts;
  const std::string value = default_text(field);
  const bool is_preset = is_set_by_any(presets, field.info.name);
  if (!value.empty()) parts.push_back("default: " + value + (is_preset ? ", or as the base's preset sets" : ""));
  if (value.empty() && is_preset) parts.push_back("the base's preset may set it");
  if (const std::string range = field_range(field); !range.empty() && !is_bool(field)) parts.push_back(range);
  if (!field.info.unit.empty()) parts.push_back(field.info.unit);
  if (is_list(field)) parts.push_back("may be given several times");
  for (const std::string& alias : field.info.aliases) parts.push_back("also " + flag_name(alias));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text.empty() ? "" : " [" + text + "]";
}

// Breaks at spaces so that no line passes `columns`; lines after the first are indented.
std::string wrapped(const std::string& text, std::size_t columns) {
  const std::size_t width = std::max<std::size_t>(columns, kIndent + 30) - kIndent;
  std::istringstream words(text);
  std::string result;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      result += line + "\n" + std::string(kIndent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

std::string flag_with_value(const Field& field) {
  const std::string value = placeholder(field);
  return flag_name(field.info.name) + (value.empty() ? "" : " " + value);
}

// A '|' would end a cell of the table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "`" + text + "`";
}

// An option or preset and its explanation, which begins in one column.
std::string entry(const std::string& name, const std::string& explanation, std::size_t columns) {
  std::string head = "  " + name;
  if (head.size() + 2 > kIndent) {
    head += "\n" + std::string(kIndent, ' ');
  } else {
    head.resize(kIndent, ' ');
  }
  return head + wrapped(explanation, columns) + "\n";
}

// "rank 16, learning_rate 0.0001"
std::string values_text(const Preset& preset) {
  std::vector<std::string> values;
  for (const auto& [name, value] : preset.values) values.push_back(name + " " + value);
  return fmt::format("{}", fmt::join(values, ", "));
}

bool is_among(const FieldList& fields, const Field& field) {
  const Field* same = find_field(fields, field.info.name);
  return same != nullptr && same->info.help == field.info.help && same->info.group == field.info.group;
}

std::string table_row(const Field& field, const std::vector<Preset>& presets) {
  std::string names = code(flag_name(field.info.name));
  for (const std::string& alias : field.info.aliases) names += ", " + code(flag_name(alias));
  const std::string preset = is_set_by_any(presets, field.info.name) ? " ([preset](#presets))" : "";
  return "| " + names + " | " + field_type(field) + " | " + code(cell(default_text(field))) + preset + " | " +
         cell(is_bool(field) ? "" : field_range(field)) + " | " + field.info.unit + " | " + cell(field.info.help) +
         " |\n";
}

std::string preset_tables(const std::vector<Preset>& presets) {
  if (presets.empty()) return "";
  std::string text =
      "\n### Presets\n\nThe defaults that come with a base: files of `configs/`, of which the bundled base carries "
      "copies. `--config` and flags\noverride them. The first lines of a run, `check` and `plan` print what a preset "
      "set.\n\n| file | applies to | sets |\n|---|---|---|\n";
  for (const Preset& preset : presets) {
    text += "| " + code(preset.file) + " | " + preset.applies_to + " | " + cell(values_text(preset)) + " |\n";
  }
  return text;
}

}  // namespace

std::string help_text(const CommandHelp& command, const FieldList& fields, const std::vector<Preset>& presets,
                      int columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::string text = command.summary + "\n\nusage: " + command.usage + "\n";
  for (const auto& [group, members] : grouped(fields)) {
    text += "\n" + group + ":\n";
    for (const Field* field : members) {
      text += entry(flag_with_value(*field), field->info.help + details(*field, presets), width);
    }
  }
  if (presets.empty()) return text;
  text += "\nPresets, the defaults that come with a base; --config and flags override them:\n";
  for (const Preset& preset : presets) {
    text += entry(preset.file, preset.applies_to + ": " + values_text(preset), width);
  }
  return text;
}

std::string reference_markdown(const CommandHelp& command, const FieldList& fields, const std::vector<Preset>& presets,
                               const FieldList& of_train) {
  std::string text = "## sdtune " + command.name + "\n\n" + command.summary + "\n\n`" + command.usage + "`\n";
  FieldList own;
  for (const Field& field : fields) {
    if (!is_among(of_train, field)) own.push_back(field);
  }
  if (own.size() < fields.size()) text += "\nTakes the options of `sdtune train` too, with the same presets.\n";
  for (const auto& [group, members] : grouped(own)) {
    text +=
        "\n### " + group + "\n\n| option | type | default | allowed | unit | meaning |\n|---|---|---|---|---|---|\n";
    for (const Field* field : members) text += table_row(*field, presets);
  }
  return own.size() < fields.size() ? text : text + preset_tables(presets);
}

}  // namespace sdtune::app
