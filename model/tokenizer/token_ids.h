// The JSON of a tokenizer, whose 50 000 tokens and ids are taken while it is parsed and not made into a tree first:
// each start of the program reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace sdtune {

// No file of a tokenizer is larger.
inline constexpr std::size_t kMostTokenizerBytes = std::size_t{64} << 20;

// Not our insertion-ordered Json, which looks keys up one by one.
using SortedJson = nlohmann::json;

// Tokens and ids as a file has them.
class TokenIds {
 public:
  TokenIds() { ids_.reserve(std::size_t{1} << 16); }

  // The last of equal tokens counts, as in Python.
  void add(std::string token, const SortedJson& id);

  // The ids; they are 0 to size - 1, each there once. Throws WeightError naming `where`: others, or none.
  std::unordered_map<std::string, std::int64_t> checked(const std::string& where) &&;

 private:
  std::unordered_map<std::string, std::int64_t> ids_;
  std::map<std::string, std::string> wrong_;  // token -> what stands in place of its id
};

struct TokenizerJson {
  SortedJson json;  // without the tokens
  TokenIds tokens;
};

// Parses a file; the tokens are the object under the keys `place` (none: the file's own object). Throws WeightError:
// absent, larger than a tokenizer's, not JSON, nested too deep.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path, const std::vector<std::string>& place);

}  // namespace sdtune
