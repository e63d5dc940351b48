#include "model/tokenizer/clip_added_tokens.h"

#include <algorithm>
#include <cstddef>

#include "model/tokenizer/clip_text_cleanup.h"

namespace sdtune {

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens, bool normalized) {
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    std::u32string content = decode_utf8(token.content);
    if (normalized) content = clean_clip_text(content);
    if (!content.empty()) entries_.push_back({std::move(content), token});
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.content.size() > b.content.size(); });
}

const AddedTokenMatcher::Entry* AddedTokenMatcher::match_at(std::u32string_view text, std::size_t at) const {
  for (const Entry& entry : entries_) {
    if (text.substr(at).starts_with(entry.content)) return &entry;
  }
  return nullptr;
}

std::vector<TextPiece> AddedTokenMatcher::split(std::u32string_view text) const {
  std::vector<TextPiece> pieces;
  std::size_t done = 0;  // text before this is in `pieces`
  for (std::size_t at = 0; at < text.size();) {
    const Entry* entry = match_at(text, at);
    if (entry == nullptr) {
      ++at;
      continue;
    }
    std::size_t first = at;
    std::size_t last = at + entry->content.size();
    at = last;  // also where the token is then refused: matches do not overlap
    const bool inside_word =
        (first > 0 && is_word_character(text[first - 1])) || (last < text.size() && is_word_character(text[last]));
    if (entry->token.single_word && inside_word) continue;
    while (entry->token.lstrip && first > done && is_white_space(text[first - 1])) --first;
    while (entry->token.rstrip && last < text.size() && is_white_space(text[last])) ++last;
    if (first > done) pieces.push_back({-1, text.substr(done, first - done)});
    pieces.push_back({entry->token.id, text.substr(first, last - first)});
    done = last;
    at = std::max(at, last);
  }
  if (done < text.size()) pieces.push_back({-1, text.substr(done)});
  return pieces;
}

}  // namespace sdtune
