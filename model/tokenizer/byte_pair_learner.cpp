#include "model/tokenizer/byte_pair_learner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "model/base/error.h"
#include "model/tokenizer/clip_added_tokens.h"
#include "model/tokenizer/clip_bpe.h"
#include "model/tokenizer/clip_special_tokens.h"
#include "model/tokenizer/clip_text_cleanup.h"
#include "model/tokenizer/clip_vocabulary_file.h"

namespace sdtune {
namespace {

constexpr std::int64_t kNumBytes = 256;
constexpr std::int64_t kNumSpecial = 2;
constexpr std::int64_t kSmallestVocabulary = 2 * kNumBytes + kNumSpecial;
constexpr std::int64_t kRareIsBelow = 2;  // a pair seen once is one word's spelling, not a piece of words

// A different word of the texts: its symbols so far, and how often the texts have it.
struct CountedWord {
  std::vector<std::string> symbols;
  std::int64_t count = 0;
};

ClipSpecialTokens special_tokens(std::int64_t model_max_length) {
  ClipSpecialTokens special;
  special.model_max_length = model_max_length;
  for (const std::string& content : {special.bos_token, special.eos_token}) {
    AddedToken token;
    token.content = content;
    token.id = 0;  // a token's, until the merges are counted
    token.normalized = false;
    token.special = true;
    special.tokens.push_back(std::move(token));
  }
  return special;
}

std::vector<std::string> byte_symbols(const std::string& word) {
  std::vector<std::string> symbols;
  for (const char byte : word) symbols.push_back(byte_character(static_cast<unsigned char>(byte)));
  symbols.back() += kEndOfWord;
  return symbols;
}

std::vector<CountedWord> count_words(const std::vector<std::string>& texts, const ClipSpecialTokens& special) {
  const AddedTokenMatcher written_out(special.tokens, false);
  std::map<std::string, std::int64_t> counts;  // in order, so that nothing depends on a hash
  for (const std::string& text : texts) {
    const std::u32string code_points = decode_utf8(text);
    for (const TextPiece& piece : written_out.split(code_points)) {
      if (piece.id >= 0) continue;
      for (const std::string& word : split_clip_words(clean_clip_text(piece.text))) ++counts[word];
    }
  }
  std::vector<CountedWord> words;
  for (const auto& [word, count] : counts) words.push_back({byte_symbols(word), count});
  return words;
}

// The pair that occurs most often, or nothing when all are rare.
std::optional<MergeRule> most_frequent_pair(const std::vector<CountedWord>& words) {
  std::map<MergeRule, std::int64_t> counts;
  for (const CountedWord& word : words) {
    for (std::size_t i = 1; i < word.symbols.size(); ++i) counts[{word.symbols[i - 1], word.symbols[i]}] += word.count;
  }
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });  // the first
  if (most == counts.end() || most->second < kRareIsBelow) return std::nullopt;
  return most->first;
}

// Leftmost first, as ClipBpe merges.
void merge_pair(const MergeRule& pair, CountedWord& word) {
  std::vector<std::string> merged;
  for (std::size_t i = 0; i < word.symbols.size(); ++i) {
    const bool here =
        i + 1 < word.symbols.size() && word.symbols[i] == pair.first && word.symbols[i + 1] == pair.second;
    merged.push_back(here ? pair.first + pair.second : std::move(word.symbols[i]));
    if (here) ++i;
  }
  word.symbols = std::move(merged);
}

// Bytes in the order of their characters, which is CLIP's: "!" is 0.
ClipVocabulary byte_vocabulary() {
  std::vector<std::u32string> characters;
  for (int byte = 0; byte < kNumBytes; ++byte) characters.push_back(decode_utf8(byte_character(byte)));
  std::sort(characters.begin(), characters.end());
  ClipVocabulary vocabulary;
  vocabulary.merges_where = "learnt merges";
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const std::string token = encode_utf8(characters[i]);
    vocabulary.ids[token] = static_cast<std::int64_t>(i);
    vocabulary.ids[token + std::string(kEndOfWord)] = kNumBytes + static_cast<std::int64_t>(i);
  }
  return vocabulary;
}

void check_sizes(std::int64_t vocab_size, std::int64_t model_max_length) {
  if (vocab_size < kSmallestVocabulary) {
    throw ConfigError("vocab_size", "is too small (got " + std::to_string(vocab_size) + "; allowed: at least " +
                                        std::to_string(kSmallestVocabulary) + ", the bytes and the special tokens)");
  }
  if (model_max_length < 3 || model_max_length > 4096) {
    throw ConfigError("model_max_length",
                      "is out of range (got " + std::to_string(model_max_length) + "; allowed: 3..4096)");
  }
}

}  // namespace

ClipTokenizer learn_tokenizer(const std::vector<std::string>& texts, std::int64_t vocab_size,
                              std::int64_t model_max_length) {
  check_sizes(vocab_size, model_max_length);
  ClipSpecialTokens special = special_tokens(model_max_length);
  std::vector<CountedWord> words = count_words(texts, special);
  ClipVocabulary vocabulary = byte_vocabulary();
  while (std::ssize(vocabulary.ids) + kNumSpecial < vocab_size) {
    const std::optional<MergeRule> pair = most_frequent_pair(words);
    if (!pair) break;
    for (CountedWord& word : words) merge_pair(*pair, word);
    vocabulary.merges.push_back(*pair);
    // Two pairs can make the same token (ab + c, a + bc): it keeps its first id.
    vocabulary.ids.try_emplace(pair->first + pair->second, std::ssize(vocabulary.ids));
  }
  for (AddedToken& token : special.tokens) {
    token.id = std::ssize(vocabulary.ids);
    vocabulary.ids[token.content] = token.id;
  }
  return ClipTokenizer::from_vocabulary(std::move(vocabulary), std::move(special));
}

}  // namespace sdtune
