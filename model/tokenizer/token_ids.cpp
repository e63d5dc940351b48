#include "model/tokenizer/token_ids.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {
namespace {

constexpr std::int64_t kWrongId = -1;
constexpr int kMostLevels = 64;  // of objects and lists: what walks through a value goes as deep as it is

// Hears of each key and value as it is parsed, and keeps tokens out of the tree.
class TokenCollector {
 public:
  TokenCollector(TokenIds& tokens, const std::vector<std::string>& place) : tokens_(tokens), place_(place) {}

  // `depth`: of the objects and lists around what was parsed; a container's own start does not count.
  bool operator()(int depth, SortedJson::parse_event_t event, const SortedJson& parsed) {
    using Event = SortedJson::parse_event_t;
    const auto level = static_cast<std::size_t>(depth);
    if (event == Event::key) {
      keys_.resize(level);
      keys_.back() = parsed.get_ref<const std::string&>();
      return !is_token(level);
    }
    if (!is_token(level)) return true;  // a value goes where its key went
    if (event == Event::value) tokens_.add(keys_.back(), parsed);
    if (event == Event::object_start) tokens_.add(keys_.back(), SortedJson::object());
    if (event == Event::array_start) tokens_.add(keys_.back(), SortedJson::array());
    return true;
  }

 private:
  bool is_token(std::size_t level) const {
    return level == place_.size() + 1 && keys_.size() == level &&
           std::equal(place_.begin(), place_.end(), keys_.begin());
  }

  TokenIds& tokens_;
  const std::vector<std::string>& place_;
  std::vector<std::string> keys_;  // around what is parsed, outermost first
};

}  // namespace

void TokenIds::add(std::string token, const SortedJson& id) {
  const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
  if (!fits) wrong_.insert_or_assign(token, id.dump());
  ids_.insert_or_assign(std::move(token), fits ? id.get<std::int64_t>() : kWrongId);
}

std::unordered_map<std::string, std::int64_t> TokenIds::checked(const std::string& where) && {
  if (ids_.empty()) throw WeightError(where, "has no object of tokens and ids");
  std::vector<bool> used(ids_.size(), false);
  for (const auto& [token, id] : ids_) {
    const bool fits = id != kWrongId && id < std::ssize(used) && !used[static_cast<std::size_t>(id)];
    if (!fits) {
      const std::string got = id == kWrongId ? wrong_.at(token) : std::to_string(id);
      throw WeightError(where, "token '" + token + "' has a wrong id (got " + got + "; allowed: 0.." +
                                   std::to_string(used.size() - 1) + ", each once)");
    }
    used[static_cast<std::size_t>(id)] = true;
  }
  return std::move(ids_);
}

TokenizerJson read_tokenizer_json(const std::filesystem::path& path, const std::vector<std::string>& place) {
  TokenizerJson out;
  TokenCollector collector(out.tokens, place);
  const auto take = [&](int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
    if (depth > kMostLevels) {
      throw WeightError(path.string(), "is nested too deep (allowed: " + std::to_string(kMostLevels) + " levels)",
                        "download the tokenizer again");
    }
    return collector(depth, event, parsed);
  };
  out.json = SortedJson::parse(read_file(path, kMostTokenizerBytes), take, false);
  if (out.json.is_discarded()) throw WeightError(path.string(), "is not valid JSON", "download the tokenizer again");
  return out;
}

}  // namespace sdtune
