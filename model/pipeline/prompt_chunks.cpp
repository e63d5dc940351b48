#include "model/pipeline/prompt_chunks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sdtune::model {
namespace {

constexpr std::int64_t kCommaReach = 20;  // tokens: A1111's comma_padding_backtrack

PromptChunk framed(const ClipTokenizer& tokenizer, const std::vector<std::int64_t>& words,
                   const std::vector<float>& weights) {
  const auto length = static_cast<std::size_t>(tokenizer.model_max_length());
  PromptChunk chunk{{tokenizer.bos_token_id()}, {1.0F}};
  chunk.ids.insert(chunk.ids.end(), words.begin(), words.end());
  chunk.ids.push_back(tokenizer.eos_token_id());
  chunk.ids.resize(length, tokenizer.pad_token_id());
  chunk.weights.insert(chunk.weights.end(), weights.begin(), weights.end());
  chunk.weights.resize(length, 1.0F);
  return chunk;
}

PromptChunk plain_chunk(const PromptVocabulary& vocabulary, std::string_view prompt) {
  std::vector<std::int64_t> words;
  for (const std::vector<std::int64_t>& ids : encode_groups(vocabulary, prompt)) {
    words.insert(words.end(), ids.begin(), ids.end());
  }
  const std::int64_t room = vocabulary.tokenizer.model_max_length() - 2;
  words.resize(static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(words), room)));
  return framed(vocabulary.tokenizer, words, std::vector<float>(words.size(), 1.0F));
}

// -1 where the vocabulary has no token of its own for it.
std::int64_t comma_of(const ClipTokenizer& tokenizer) {
  const std::vector<std::int64_t> ids = tokenizer.encode(",");
  return ids.size() == 1 ? ids.front() : -1;
}

// Fills chunks token by token.
class ChunkFiller {
 public:
  explicit ChunkFiller(const ClipTokenizer& tokenizer)
      : tokenizer_(tokenizer), room_(tokenizer.model_max_length() - 2), comma_(comma_of(tokenizer)) {}

  // One word, or the vectors of a learned token, which stay together.
  void add(const std::vector<std::int64_t>& ids, double weight) {
    if (ids.front() == comma_) {
      last_comma_ = size();
    } else if (size() == room_ && last_comma_ >= 0 && size() - last_comma_ <= kCommaReach) {
      move_behind_comma();
    }
    if (size() + std::ssize(ids) > room_) close();
    words_.insert(words_.end(), ids.begin(), ids.end());
    weights_.resize(words_.size(), static_cast<float>(weight));
  }

  void close() {
    chunks_.push_back(framed(tokenizer_, words_, weights_));
    words_.clear();
    weights_.clear();
    last_comma_ = -1;
  }

  std::vector<PromptChunk> finish() {
    if (!words_.empty() || chunks_.empty()) close();
    return std::move(chunks_);
  }

 private:
  std::int64_t size() const { return std::ssize(words_); }

  void move_behind_comma() {
    const auto begin = last_comma_ + 1;
    const std::vector<std::int64_t> words(words_.begin() + begin, words_.end());
    const std::vector<float> weights(weights_.begin() + begin, weights_.end());
    words_.resize(static_cast<std::size_t>(begin));
    weights_.resize(static_cast<std::size_t>(begin));
    close();
    words_ = words;
    weights_ = weights;
  }

  const ClipTokenizer& tokenizer_;
  std::int64_t room_;   // words of a chunk
  std::int64_t comma_;  // the token
  std::vector<PromptChunk> chunks_;
  std::vector<std::int64_t> words_;  // of the chunk being filled
  std::vector<float> weights_;
  std::int64_t last_comma_ = -1;  // in words_; -1: none
};

}  // namespace

std::vector<PromptChunk> chunk_prompt(const PromptVocabulary& vocabulary, std::string_view prompt,
                                      PromptSyntax syntax) {
  if (syntax == PromptSyntax::kPlain) return {plain_chunk(vocabulary, prompt)};
  ChunkFiller filler(vocabulary.tokenizer);
  for (const PromptPiece& piece : parse_weighted_prompt(prompt)) {
    if (piece.is_break) {
      filler.close();
      continue;
    }
    for (const std::vector<std::int64_t>& ids : encode_groups(vocabulary, piece.text)) filler.add(ids, piece.weight);
  }
  return filler.finish();
}

PromptChunk empty_chunk(const ClipTokenizer& tokenizer) {
  return framed(tokenizer, {}, {});
}

}  // namespace sdtune::model
