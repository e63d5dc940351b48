#include "train/resume/replica.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace sdtune::train {

namespace {

using Hashes = std::map<std::string, std::string>;

constexpr std::size_t kMostNames = 3;

// The names that only one of them has, or both with other hashes.
std::vector<std::string> different_names(const Hashes& first, const Hashes& other) {
  std::vector<Hashes::value_type> pairs;
  std::set_symmetric_difference(first.begin(), first.end(), other.begin(), other.end(), std::back_inserter(pairs));
  std::vector<std::string> names;
  for (const auto& [name, hash] : pairs) {
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

void append_files(std::string& text, const std::string& what, const Hashes& first, const Hashes& other) {
  const std::vector<std::string> names = different_names(first, other);
  if (names.empty()) return;
  Hashes all = first;
  all.insert(other.begin(), other.end());
  const std::size_t shown = std::min<std::size_t>(names.size(), kMostNames);
  text += text.empty() ? "" : ", ";
  text += fmt::format("{} ({} of {}: {}{})", what, names.size(), all.size(),
                      fmt::join(names.data(), names.data() + shown, ", "), names.size() > shown ? ", ..." : "");
}

}  // namespace

Json Replica::to_json() const {
  return {{"base", base}, {"images", images}, {"held_out", held_out}};
}

Replica Replica::from_json(const Json& json) {
  return {json.at("base").get<Hashes>(), json.at("images").get<Hashes>(), json.at("held_out").get<Hashes>()};
}

std::string replica_difference(const Replica& first, const Replica& other) {
  std::string text;
  append_files(text, "another base", first.base, other.base);
  append_files(text, "other images or captions", first.images, other.images);
  append_files(text, "other held-out photos", first.held_out, other.held_out);
  return text;
}

}  // namespace sdtune::train
