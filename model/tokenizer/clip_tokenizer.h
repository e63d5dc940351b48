// CLIP's tokenizer: text to token ids, equal to transformers' CLIPTokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/file_system.h"

namespace sdtune {

struct ClipSpecialTokens;
struct ClipVocabulary;

// A framed prompt: start token, words, end token, padding.
struct Tokens {
  std::vector<std::int64_t> ids;  // model_max_length of them
  std::int64_t truncated = 0;     // how many ids of the text did not fit
};

// A cheap value: copies share the vocabulary, and all methods may be called from several threads.
class ClipTokenizer {
 public:
  // Reads vocab.json + merges.txt (or tokenizer.json), tokenizer_config.json and special_tokens_map.json of a tokenizer
  // folder. Throws WeightError naming the file: absent, malformed, or files that do not belong together.
  static ClipTokenizer from_folder(const std::filesystem::path& folder);

  // Of parts in memory; `special` has its ids. Throws WeightError when a merge uses a token that the vocabulary lacks.
  static ClipTokenizer from_vocabulary(ClipVocabulary vocabulary, ClipSpecialTokens special);

  // Ids of the text alone, without start, end and padding. Throws DataError naming the byte where text is not UTF-8.
  std::vector<std::int64_t> encode(std::string_view text) const;
  // The same, framed to model_max_length.
  Tokens operator()(std::string_view text) const;
  // Writes vocab.json, merges.txt, tokenizer_config.json and special_tokens_map.json, which transformers loads.
  void save(FileSystem& files, const std::filesystem::path& folder) const;

  std::int64_t vocab_size() const;        // ids are below this
  std::int64_t model_max_length() const;  // 77
  std::int64_t bos_token_id() const;
  std::int64_t eos_token_id() const;
  std::int64_t pad_token_id() const;  // 49407 in SD 1.x and SDXL's first, 0 ("!") in SD 2.x and SDXL's second

 private:
  struct State;
  explicit ClipTokenizer(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace sdtune
