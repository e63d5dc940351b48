#include "train/dist/beat_reader.h"

#include <cstddef>

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSummaryKey = "all_beats";  // a line a rank, in their order

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string beat_key(std::int64_t rank) {
  return "alive/" + std::to_string(rank);
}

BeatReader::BeatReader(std::int64_t rank, std::int64_t ranks) : rank_(rank) {
  for (std::int64_t other = 0; other < ranks; ++other) keys_.push_back(beat_key(other));
}

std::vector<std::string> BeatReader::read(c10d::Store& store) {
  if (std::ssize(keys_) <= kDirectRanks) return read_each(store);
  if (rank_ == 0) {
    const std::vector<std::string> beats = read_each(store);
    store.set(kSummaryKey, joined(beats));
    return beats;
  }
  const std::string summary = store.check({kSummaryKey}) ? store.get_to_str(kSummaryKey) : "";
  if (summary != summary_) {
    summary_ = summary;
    changed_ = Clock::now();
  }
  return Clock::now() - changed_ > kStale ? read_each(store) : split(summary_);
}

std::vector<std::string> BeatReader::read_each(c10d::Store& store) const {
  std::vector<std::string> beats;
  for (const std::vector<std::uint8_t>& bytes : store.multiGet(keys_)) beats.emplace_back(bytes.begin(), bytes.end());
  return beats;
}

}  // namespace sdtune::train
