// Tokens that are looked for in a text before it is cut into words: the special tokens, and words added to a
// vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sdtune {

// Flags as transformers' AddedToken has them.
struct AddedToken {
  std::string content;
  std::int64_t id = -1;
  bool single_word = false;  // matches only between characters that are not part of a word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
  bool normalized = true;    // looked for in the cleaned text (and itself cleaned) instead of the raw text
  bool special = false;
};

// A stretch of text: a token's id, or text between tokens (id -1).
struct TextPiece {
  std::int64_t id;
  std::u32string_view text;
};

// Finds the tokens in a text, leftmost first and of those at one place the longest.
class AddedTokenMatcher {
 public:
  // Keeps the tokens whose `normalized` is the given one.
  AddedTokenMatcher(const std::vector<AddedToken>& tokens, bool normalized);

  // The whole text in pieces, in order; views into `text`.
  std::vector<TextPiece> split(std::u32string_view text) const;

 private:
  struct Entry {
    std::u32string content;
    AddedToken token;
  };
  const Entry* match_at(std::u32string_view text, std::size_t at) const;

  std::vector<Entry> entries_;  // longest first
};

}  // namespace sdtune
