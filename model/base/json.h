// JSON of files that are not to be trusted: duplicate keys, excessive depth and trailing bytes are refused, and a wrong
// type is an error that names file and key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sdtune {

using Json = nlohmann::ordered_json;

// Parses text; `where` (usually the path) goes into errors. Throws WeightError.
Json parse_json(std::string_view text, const std::string& where);

// The text with U+FFFD in place of what is no UTF-8: a file's name need not be UTF-8, and what JSON holds must be.
std::string valid_text(const std::string& text);

// Reads the fields of one object and refuses those that were not read: call the getters, then finish().
class JsonObject {
 public:
  JsonObject(const Json& object, std::string where);

  bool has(const std::string& key) const;  // present and not null
  // The value, or `fallback` when absent or null; the overloads without fallback require it.
  std::int64_t integer(const std::string& key);
  std::int64_t integer(const std::string& key, std::int64_t fallback);
  double number(const std::string& key, double fallback);
  bool boolean(const std::string& key, bool fallback);
  std::string string(const std::string& key, const std::string& fallback);
  std::vector<std::int64_t> integers(const std::string& key);  // a list, or one number as a list of one
  std::vector<bool> booleans(const std::string& key);
  std::vector<std::string> strings(const std::string& key);
  const Json& raw(const std::string& key);  // marks the key as read; null when absent
  // A key that is known and has no effect here (e.g. "_diffusers_version").
  void ignore(const std::string& key);
  // A key that we support only with this value: any other value (absent and null count as equal) is an error naming it.
  void require(const std::string& key, const Json& only_value);
  // Throws WeightError naming the key unless min <= value <= max, for a value that came of this key.
  void check_range(const std::string& key, std::int64_t value, std::int64_t min, std::int64_t max) const;
  // Throws WeightError naming every key that was not read. Keys that begin with '_' are bookkeeping and pass.
  void finish() const;
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string> read_;
};

}  // namespace sdtune
