// A mapping of a YAML file that is a table (configs/gpus.yaml, configs/processors.yaml), read key by key.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/options/yaml.h"

namespace sdtune {

class YamlEntry {
 public:
  // `where`: the file, for errors. Throws ConfigError with file:line for what is no mapping and for a key that is not
  // `allowed`. Keeps references to `value`.
  YamlEntry(const YamlValue& value, std::string where, const std::vector<std::string_view>& allowed);

  // Null where there is no such key.
  const YamlValue* find(std::string_view key) const;
  // The members below throw ConfigError with file:line where the key is missing or its value is another one.
  std::string text(std::string_view key) const;
  std::string one_of(std::string_view key, std::initializer_list<std::string_view> allowed) const;
  // Above 0, and not above `most`.
  double number(std::string_view key, double most, std::optional<double> otherwise = {}) const;
  // Empty where there is no such key.
  const std::vector<YamlValue>& items(std::string_view key) const;

 private:
  [[noreturn]] void fail(int line, const std::string& what, const std::string& allowed) const;

  const YamlValue& value_;
  std::string where_;
};

}  // namespace sdtune
