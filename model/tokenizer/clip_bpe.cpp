#include "model/tokenizer/clip_bpe.h"

#include <cstddef>
#include <queue>

#include "model/base/error.h"
#include "model/tokenizer/clip_text_cleanup.h"

namespace sdtune {
namespace {

std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint64_t>(right);
}

// A symbol of the word being merged, in a list linked by index.
struct Symbol {
  std::int64_t id;
  std::ptrdiff_t previous;
  std::ptrdiff_t next;  // -1 at the end
  bool alive = true;
};

// A merge that was possible when it was queued: of the symbol at `at` and its next.
struct Candidate {
  std::int64_t rank;
  std::ptrdiff_t at;
  std::int64_t id;
  // The queue's top is the lowest rank, and of equal ranks the leftmost.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

}  // namespace

std::string byte_character(int byte) {
  const auto printable = [](int value) {
    return (value >= '!' && value <= '~') || (value >= 0xA1 && value <= 0xAC) || (value >= 0xAE && value <= 0xFF);
  };
  char32_t code_point = static_cast<char32_t>(byte);
  if (!printable(byte)) {
    code_point = 256;
    for (int before = 0; before < byte; ++before) code_point += printable(before) ? 0 : 1;
  }
  return encode_utf8(std::u32string(1, code_point));
}

ClipBpe::ClipBpe(std::unordered_map<std::string, std::int64_t> vocabulary, std::vector<MergeRule> merges,
                 std::int64_t unknown_id, const std::string& merges_where)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)) {
  const auto id_of = [&](const std::string& token, std::size_t rank) {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) {
      throw WeightError(merges_where,
                        "merge " + std::to_string(rank + 1) + " has the token '" + token +
                            "', which the vocabulary lacks: the files do not belong together",
                        "take vocabulary and merges from one model");
    }
    return found->second;
  };
  merge_of_pair_.reserve(merges_.size());
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    const auto& [left, right] = merges_[rank];
    const Merge merge{static_cast<std::int64_t>(rank), id_of(left + right, rank)};
    merge_of_pair_.insert_or_assign(pair_key(id_of(left, rank), id_of(right, rank)), merge);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = byte_character(byte);
    const auto alone = vocabulary_.find(token);
    const auto last = vocabulary_.find(token + std::string(kEndOfWord));
    byte_ids_[static_cast<std::size_t>(byte)] = alone == vocabulary_.end() ? unknown_id : alone->second;
    last_byte_ids_[static_cast<std::size_t>(byte)] = last == vocabulary_.end() ? unknown_id : last->second;
  }
}

const ClipBpe::Merge* ClipBpe::find_merge(std::int64_t left, std::int64_t right) const {
  const auto found = merge_of_pair_.find(pair_key(left, right));
  return found == merge_of_pair_.end() ? nullptr : &found->second;
}

void ClipBpe::encode_word(std::string_view word, std::vector<std::int64_t>& ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    const bool last = i + 1 == word.size();
    const auto at = static_cast<std::ptrdiff_t>(i);
    symbols.push_back({last ? last_byte_ids_[byte] : byte_ids_[byte], at - 1, last ? -1 : at + 1});
  }
  const auto symbol = [&](std::ptrdiff_t at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };

  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::ptrdiff_t at) {
    if (at < 0 || symbol(at).next < 0) return;
    const Merge* merge = find_merge(symbol(at).id, symbol(symbol(at).next).id);
    if (merge != nullptr) queue.push({merge->rank, at, merge->id});
  };
  for (std::ptrdiff_t at = 0; at < std::ssize(symbols); ++at) offer(at);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbol(best.at);
    if (!left.alive || left.next < 0) continue;
    Symbol& right = symbol(left.next);
    const Merge* merge = find_merge(left.id, right.id);
    if (merge == nullptr || merge->id != best.id) continue;  // an earlier merge changed this pair
    left.id = best.id;
    left.next = right.next;
    right.alive = false;
    if (left.next >= 0) symbol(left.next).previous = best.at;
    offer(left.previous);
    offer(best.at);
  }
  for (const Symbol& entry : symbols) {
    if (entry.alive) ids.push_back(entry.id);
  }
}

}  // namespace sdtune
