#include "model/options/field.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>

#include "model/base/error.h"

namespace sdtune {
namespace {

template <typename T>
struct is_std_optional : std::false_type {};
template <typename T>
struct is_std_optional<std::optional<T>> : std::true_type {};

std::string lowered(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

// Very long values (a pasted file, an alias bomb) must not fill the terminal.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMaxShown = 80;
  return text.size() <= kMaxShown ? text : text.substr(0, kMaxShown) + "...";
}

// Throws "what (got TEXT; allowed: RANGE)". The field's name leads unless `where` already says it.
[[noreturn]] void refuse(const Field& field, const std::string& where, const std::string& what,
                         const std::string& text) {
  std::string allowed = field_range(field);
  if (allowed.empty()) allowed = field_type(field);
  const std::string flag = flag_name(field.info.name);
  const bool named = where.find(field.info.name) != std::string::npos || where.find(flag) != std::string::npos;
  const std::string subject = named ? "" : field.info.name + " ";
  throw ConfigError(
      where.empty() ? field.info.name : where,
      subject + what + " (got " + (text.empty() ? "nothing" : shortened(text)) + "; allowed: " + allowed + ")");
}

bool parse_bool(const Field& field, const std::string& text, const std::string& where) {
  const std::string word = lowered(text);
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (word == no) return false;
  }
  refuse(field, where, "must be true or false", text);
}

// Reads the whole text as one number; refuses what is left over and what does not fit.
template <typename Number>
Number parse_number(const Field& field, const std::string& text, const std::string& where, const char* type_name) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status == std::errc::result_out_of_range) {
    refuse(field, where, std::string("does not fit into 64 bits as ") + type_name, text);
  }
  if (status != std::errc() || stop != end) refuse(field, where, std::string("must be ") + type_name, text);
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) refuse(field, where, "must be finite", text);
  }
  const double value = static_cast<double>(number);
  const FieldInfo& info = field.info;
  const bool low = info.min && (info.exclusive_min ? value <= *info.min : value < *info.min);
  if (low || (info.max && value > *info.max)) refuse(field, where, "is out of range", text);
  return number;
}

std::string parse_string(const Field& field, const std::string& text, const std::string& where) {
  const std::vector<std::string>& choices = field.info.choices;
  if (text.find('\0') != std::string::npos) refuse(field, where, "must not contain a NUL byte", "a NUL byte");
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  for (const auto& [old, now] : field.info.old_choices) {
    if (text == old) return now;
  }
  const std::string near = nearest_name(text, choices);
  refuse(field, where, near.empty() ? "is unknown" : "is unknown, nearest is " + near, text);
}

template <typename T>
T parse_value(const Field& field, const std::string& text, const std::string& where) {
  if constexpr (std::is_same_v<T, bool>) {
    return parse_bool(field, text, where);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return parse_number<T>(field, text, where, "an integer");
  } else if constexpr (std::is_same_v<T, double>) {
    return parse_number<T>(field, text, where, "a number");
  } else {
    return parse_string(field, text, where);
  }
}

std::string number_text(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  // YAML 1.1 readers (PyYAML) take "2e-06" for a string: a float needs its point.
  const std::size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

// A bound in words: whole numbers without point or exponent.
std::string bound_text(double value) {
  constexpr double kLargestExact = 1e15;
  const bool whole = std::abs(value) < kLargestExact && value == std::floor(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : number_text(value);
}

std::string value_text(bool value) {
  return value ? "true" : "false";
}
std::string value_text(std::int64_t value) {
  return std::to_string(value);
}
std::string value_text(double value) {
  return number_text(value);
}
std::string value_text(const std::string& value) {
  return yaml_quoted(value);
}
std::string value_text(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(yaml_quoted(item));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

}  // namespace

void set_field(const Field& field, const std::string& text, const std::string& where) {
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          target->clear();
          if (!text.empty()) target->push_back(parse_string(field, text, where));
        } else if constexpr (is_std_optional<T>::value) {
          const std::string word = lowered(text);
          if (word == "none" || word == "null" || text == "~") {
            target->reset();
          } else {
            *target = parse_value<typename T::value_type>(field, text, where);
          }
        } else {
          *target = parse_value<T>(field, text, where);
        }
      },
      field.value);
}

void set_field(const Field& field, const std::vector<std::string>& items, const std::string& where) {
  auto* const* list = std::get_if<std::vector<std::string>*>(&field.value);
  if (list == nullptr) refuse(field, where, "takes one value", "a list of " + std::to_string(items.size()));
  std::vector<std::string> checked;
  for (const std::string& item : items) checked.push_back(parse_string(field, item, where));
  **list = std::move(checked);
}

std::string field_text(const Field& field) {
  if (field.info.is_secret) return value_text(std::string());
  return std::visit(
      [](auto* value) -> std::string {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (is_std_optional<T>::value) {
          return value->has_value() ? value_text(**value) : "null";
        } else {
          return value_text(*value);
        }
      },
      field.value);
}

std::string yaml_quoted(const std::string& text) {
  // Plain only where no YAML reader can mistake it: letters first, then letters, digits and a few signs, and no word
  // that means a bool or null.
  const std::string word = lowered(text);
  const auto is_plain_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/' || c == '.' || c == ' ';
  };
  bool plain = !text.empty() && std::all_of(word.begin(), word.end(), is_plain_letter) && text.back() != ' ' &&
               ((word[0] >= 'a' && word[0] <= 'z') || word[0] == '/');
  for (const char* taken : {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"}) {
    if (word == taken) plain = false;
  }
  if (plain) return text;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string field_type(const Field& field) {
  return std::visit(
      [](auto* value) -> std::string {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) return "bool";
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>) return "int";
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) return "float";
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return "list of strings";
        return "string";
      },
      field.value);
}

std::string field_range(const Field& field) {
  const FieldInfo& info = field.info;
  if (!info.choices.empty()) return fmt::format("one of {}", fmt::join(info.choices, ", "));
  const std::string sign = info.exclusive_min ? " < " : " <= ";
  if (info.min && info.max) return bound_text(*info.min) + sign + "x <= " + bound_text(*info.max);
  if (info.min) return std::string(info.exclusive_min ? "x > " : "x >= ") + bound_text(*info.min);
  if (info.max) return "x <= " + bound_text(*info.max);
  return is_bool(field) ? "true or false" : "";
}

bool is_optional(const Field& field) {
  return std::visit([](auto* value) { return is_std_optional<std::remove_pointer_t<decltype(value)>>::value; },
                    field.value);
}

bool is_bool(const Field& field) {
  return field_type(field) == "bool";
}

bool is_list(const Field& field) {
  return std::holds_alternative<std::vector<std::string>*>(field.value);
}

const Field* find_field(const FieldList& fields, const std::string& name) {
  for (const Field& field : fields) {
    if (same_name(field.info.name, name)) return &field;
    for (const std::string& alias : field.info.aliases) {
      if (same_name(alias, name)) return &field;
    }
  }
  return nullptr;
}

std::string flag_name(const std::string& name) {
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::vector<std::string> field_names(const FieldList& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    names.push_back(field.info.name);
    names.insert(names.end(), field.info.aliases.begin(), field.info.aliases.end());
  }
  return names;
}

}  // namespace sdtune
