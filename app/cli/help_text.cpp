#include "app/cli/help_text.h"

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

// "[default: 4; x >= 1; steps]"
std::string details(const Field& field) {
  std::vector<std::string> parts;
  if (const std::string value = default_text(field); !value.empty()) parts.push_back("default: " + value);
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

}  // namespace

std::string help_text(const CommandHelp& command, const FieldList& fields, int columns) {
  std::string text = command.summary + "\n\nusage: " + command.usage + "\n";
  for (const auto& [group, members] : grouped(fields)) {
    text += "\n" + group + ":\n";
    for (const Field* field : members) {
      std::string head = "  " + flag_with_value(*field);
      if (head.size() + 2 > kIndent) {
        head += "\n" + std::string(kIndent, ' ');
      } else {
        head.resize(kIndent, ' ');
      }
      text += head + wrapped(field->info.help + details(*field), static_cast<std::size_t>(columns)) + "\n";
    }
  }
  return text;
}

std::string reference_markdown(const CommandHelp& command, const FieldList& fields) {
  std::string text = "## sdtune " + command.name + "\n\n" + command.summary + "\n\n`" + command.usage + "`\n";
  for (const auto& [group, members] : grouped(fields)) {
    text +=
        "\n### " + group + "\n\n| option | type | default | allowed | unit | meaning |\n|---|---|---|---|---|---|\n";
    for (const Field* field : members) {
      std::string names = code(flag_name(field->info.name));
      for (const std::string& alias : field->info.aliases) names += ", " + code(flag_name(alias));
      text += "| " + names + " | " + field_type(*field) + " | " + code(cell(default_text(*field))) + " | " +
              cell(is_bool(*field) ? "" : field_range(*field)) + " | " + field->info.unit + " | " +
              cell(field->info.help) + " |\n";
    }
  }
  return text;
}

}  // namespace sdtune::app
