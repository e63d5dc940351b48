// Byte-level byte-pair encoding (Sennrich et al., "Neural machine translation of rare words with subword units", 2016)
// in CLIP's form: every byte is a symbol, and the last symbol of a word carries "</w>".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sdtune {

using MergeRule = std::pair<std::string, std::string>;

// What the last symbol of a word ends with.
inline constexpr std::string_view kEndOfWord = "</w>";

// The printable character, in UTF-8, that vocabulary files write for a byte (0..255): itself where it is printable in
// Latin-1, else the next free code point from 256 on (the convention of GPT-2).
std::string byte_character(int byte);

class ClipBpe {
 public:
  // `unknown_id` stands for bytes that the vocabulary lacks. Throws WeightError naming `merges_where` when a merge uses
  // or makes a token that is not in the vocabulary: the two files do not belong together.
  ClipBpe(std::unordered_map<std::string, std::int64_t> vocabulary, std::vector<MergeRule> merges,
          std::int64_t unknown_id, const std::string& merges_where);

  // Appends the ids of one word (UTF-8, not empty). Takes time n log n in the word's length.
  void encode_word(std::string_view word, std::vector<std::int64_t>& ids) const;

  const std::unordered_map<std::string, std::int64_t>& vocabulary() const { return vocabulary_; }
  const std::vector<MergeRule>& merges() const { return merges_; }

 private:
  struct Merge {
    std::int64_t rank;  // lower goes first
    std::int64_t id;    // of the merged token
  };
  const Merge* find_merge(std::int64_t left, std::int64_t right) const;

  std::unordered_map<std::string, std::int64_t> vocabulary_;
  std::vector<MergeRule> merges_;
  std::array<std::int64_t, 256> byte_ids_;
  std::array<std::int64_t, 256> last_byte_ids_;  // with "</w>"
  std::unordered_map<std::uint64_t, Merge> merge_of_pair_;
};

}  // namespace sdtune
