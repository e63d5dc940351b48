#include "model/options/yaml_entry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "model/base/error.h"

namespace sdtune {
namespace {

std::string range(double most) {
  std::string text = fmt::format("{:.6f}", most);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return "above 0, at most " + text;
}

}  // namespace

YamlEntry::YamlEntry(const YamlValue& value, std::string where, const std::vector<std::string_view>& allowed)
    : value_(value), where_(std::move(where)) {
  if (value.kind != YamlValue::Kind::kMapping) fail(value.line, "is not a mapping", "keys and values");
  for (const auto& [key, entry] : value.entries) {
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      fail(entry.line, "has an unknown key " + key, fmt::format("{}", fmt::join(allowed, ", ")));
    }
  }
}

const YamlValue* YamlEntry::find(std::string_view key) const {
  for (const auto& [name, value] : value_.entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string YamlEntry::text(std::string_view key) const {
  const YamlValue* value = find(key);
  if (value == nullptr) fail(value_.line, "lacks " + std::string(key), "a text");
  if (value->kind != YamlValue::Kind::kScalar || value->text.empty()) {
    fail(value->line, std::string(key) + " is no text", "a text");
  }
  return value->text;
}

std::string YamlEntry::one_of(std::string_view key, std::initializer_list<std::string_view> allowed) const {
  std::string found = text(key);
  if (std::find(allowed.begin(), allowed.end(), found) == allowed.end()) {
    fail(find(key)->line, std::string(key) + " is not allowed (got " + found + ")",
         fmt::format("{}", fmt::join(allowed, ", ")));
  }
  return found;
}

double YamlEntry::number(std::string_view key, double most, std::optional<double> otherwise) const {
  const YamlValue* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  const std::string words = text(key);
  double found = 0;  // not by strtod: a program that imports sdtune may have set a locale with a decimal comma
  const char* end = words.data() + words.size();
  const auto [stop, status] = std::from_chars(words.data() + (words.starts_with('+') ? 1 : 0), end, found);
  if (status != std::errc() || stop != end || !std::isfinite(found) || found <= 0 || found > most) {
    fail(value->line, std::string(key) + " is not allowed (got " + words + ")", range(most));
  }
  return found;
}

const std::vector<YamlValue>& YamlEntry::items(std::string_view key) const {
  static const std::vector<YamlValue> kNone;
  const YamlValue* value = find(key);
  if (value == nullptr) return kNone;
  if (value->kind != YamlValue::Kind::kSequence) fail(value->line, std::string(key) + " is no list", "a list");
  return value->items;
}

void YamlEntry::fail(int line, const std::string& what, const std::string& allowed) const {
  throw ConfigError(where_ + ":" + std::to_string(line), what + " (allowed: " + allowed + ")");
}

}  // namespace sdtune
