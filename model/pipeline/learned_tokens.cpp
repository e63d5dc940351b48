#include "model/pipeline/learned_tokens.h"

#include <algorithm>
#include <cstddef>

namespace sdtune::model {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_letter_or_digit(char c) {
  const char small = lower(c);
  return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

bool stands_at(std::string_view text, std::size_t at, const std::string& token) {
  if (text.size() - at < token.size()) return false;
  if (!std::equal(token.begin(), token.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                  [](char a, char b) { return lower(a) == lower(b); })) {
    return false;
  }
  const std::size_t end = at + token.size();
  const bool joined_before = at > 0 && is_letter_or_digit(token.front()) && is_letter_or_digit(text[at - 1]);
  const bool joined_behind = end < text.size() && is_letter_or_digit(token.back()) && is_letter_or_digit(text[end]);
  return !joined_before && !joined_behind;
}

const LearnedToken* longest_at(const std::vector<LearnedToken>& learned, std::string_view text, std::size_t at) {
  const LearnedToken* longest = nullptr;
  for (const LearnedToken& token : learned) {
    if (stands_at(text, at, token.text) && (longest == nullptr || token.text.size() > longest->text.size())) {
      longest = &token;
    }
  }
  return longest;
}

}  // namespace

std::vector<std::vector<std::int64_t>> encode_groups(const PromptVocabulary& vocabulary, std::string_view text) {
  std::vector<std::vector<std::int64_t>> groups;
  const auto add_words = [&](std::string_view words) {
    for (const std::int64_t id : vocabulary.tokenizer.encode(words)) groups.push_back({id});
  };
  std::size_t begin = 0;  // of the words that are not encoded yet
  for (std::size_t at = 0; at < text.size();) {
    const LearnedToken* token = longest_at(vocabulary.learned, text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    add_words(text.substr(begin, at - begin));
    std::vector<std::int64_t>& ids = groups.emplace_back();
    for (std::int64_t i = 0; i < token->count; ++i) ids.push_back(token->first_id + i);
    at += token->text.size();
    begin = at;
  }
  add_words(text.substr(begin));
  return groups;
}

}  // namespace sdtune::model
