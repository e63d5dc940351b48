// YAML as configurations need it: mappings, sequences and scalars, each with the line it came from. Refused with
// file:line: duplicate keys, anchors and aliases (alias bombs), tags, a second document, tabs in the indentation, a
// byte order mark, bytes that are not UTF-8, more than 32 levels, more than 1 MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdtune {

struct YamlValue {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMapping };
  Kind kind = Kind::kNull;
  int line = 0;                                                 // from 1
  std::string text;                                             // kScalar, without quotes
  bool quoted = false;                                          // kScalar: "null" in quotes is a word
  std::vector<YamlValue> items;                                 // kSequence
  std::vector<std::pair<std::string, YamlValue>> entries = {};  // kMapping, in the file's order; = {} for clang
};

// The one document; an empty one gives kNull. `where` (usually the path) goes into errors: "where:LINE". Throws
// ConfigError.
YamlValue parse_yaml(std::string_view text, const std::string& where);

// Throws ConfigError also when the file cannot be read.
YamlValue read_yaml(const std::filesystem::path& path);

}  // namespace sdtune
