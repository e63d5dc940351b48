#include "model/tokenizer/clip_tokenizer.h"

#include <algorithm>
#include <utility>

#include "model/tokenizer/clip_added_tokens.h"
#include "model/tokenizer/clip_bpe.h"
#include "model/tokenizer/clip_special_tokens.h"
#include "model/tokenizer/clip_text_cleanup.h"
#include "model/tokenizer/clip_vocabulary_file.h"
#include "model/tokenizer/recent_folders.h"

namespace sdtune {

struct ClipTokenizer::State {
  ClipBpe bpe;
  ClipSpecialTokens special;
  AddedTokenMatcher raw_tokens;
  AddedTokenMatcher cleaned_tokens;
  std::int64_t bos_token_id;
  std::int64_t eos_token_id;
  std::int64_t pad_token_id;
};

ClipTokenizer::ClipTokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

ClipTokenizer ClipTokenizer::from_folder(const std::filesystem::path& folder) {
  static const std::vector<std::string> kFiles = {
      "vocab.json",           "merges.txt", "tokenizer.json", "added_tokens.json", "special_tokens_map.json",
      "tokenizer_config.json"};
  static RecentFolders<State> recent(2);  // as many as SDXL has
  FolderStamp stamp = stamp_of_files(folder, kFiles);
  if (const auto found = recent.find(folder, stamp)) return ClipTokenizer(found);
  ClipVocabulary vocabulary = read_clip_vocabulary(folder);
  ClipSpecialTokens special = read_clip_special_tokens(folder, vocabulary.ids, vocabulary.tokenizer_json_tokens);
  ClipTokenizer read = from_vocabulary(std::move(vocabulary), std::move(special));
  recent.keep(folder, std::move(stamp), read.state_);
  return read;
}

ClipTokenizer ClipTokenizer::from_vocabulary(ClipVocabulary vocabulary, ClipSpecialTokens special) {
  ClipBpe bpe(std::move(vocabulary.ids), std::move(vocabulary.merges), special.id_of(special.unk_token),
              vocabulary.merges_where);
  AddedTokenMatcher raw(special.tokens, false);
  AddedTokenMatcher cleaned(special.tokens, true);
  const std::int64_t bos = special.id_of(special.bos_token);
  const std::int64_t eos = special.id_of(special.eos_token);
  const std::int64_t pad = special.id_of(special.pad_token);
  return ClipTokenizer(std::make_shared<const State>(
      State{std::move(bpe), std::move(special), std::move(raw), std::move(cleaned), bos, eos, pad}));
}

std::vector<std::int64_t> ClipTokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  const std::u32string code_points = decode_utf8(text);
  for (const TextPiece& raw : state_->raw_tokens.split(code_points)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const std::u32string cleaned = clean_clip_text(raw.text);
    for (const TextPiece& piece : state_->cleaned_tokens.split(cleaned)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      for (const std::string& word : split_clip_words(piece.text)) state_->bpe.encode_word(word, ids);
    }
  }
  return ids;
}

Tokens ClipTokenizer::operator()(std::string_view text) const {
  std::vector<std::int64_t> words = encode(text);
  const std::int64_t room = model_max_length() - 2;
  Tokens tokens;
  tokens.truncated = std::max<std::int64_t>(0, std::ssize(words) - room);
  words.resize(words.size() - static_cast<std::size_t>(tokens.truncated));
  tokens.ids.reserve(static_cast<std::size_t>(model_max_length()));
  tokens.ids.push_back(bos_token_id());
  tokens.ids.insert(tokens.ids.end(), words.begin(), words.end());
  tokens.ids.push_back(eos_token_id());
  tokens.ids.resize(static_cast<std::size_t>(model_max_length()), pad_token_id());
  return tokens;
}

void ClipTokenizer::save(FileSystem& files, const std::filesystem::path& folder) const {
  files.create_directories(folder);
  write_clip_vocabulary(files, state_->bpe, folder);
  write_clip_special_tokens(files, state_->special, folder);
}

std::int64_t ClipTokenizer::vocab_size() const {
  auto size = static_cast<std::int64_t>(state_->bpe.vocabulary().size());
  for (const AddedToken& token : state_->special.tokens) size = std::max(size, token.id + 1);
  return size;
}

std::int64_t ClipTokenizer::model_max_length() const {
  return state_->special.model_max_length;
}
std::int64_t ClipTokenizer::bos_token_id() const {
  return state_->bos_token_id;
}
std::int64_t ClipTokenizer::eos_token_id() const {
  return state_->eos_token_id;
}
std::int64_t ClipTokenizer::pad_token_id() const {
  return state_->pad_token_id;
}

}  // namespace sdtune
