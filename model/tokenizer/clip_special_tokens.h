// The special and added tokens of a CLIP tokenizer folder: tokenizer_config.json, special_tokens_map.json,
// added_tokens.json, and `added_tokens` of tokenizer.json. Which file wins follows transformers 5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/tokenizer/clip_added_tokens.h"

namespace sdtune {

struct ClipSpecialTokens {
  std::vector<AddedToken> tokens;  // with ids, each text once; the four below are among them
  std::string bos_token = "<|startoftext|>";
  std::string eos_token = "<|endoftext|>";
  std::string unk_token = "<|endoftext|>";
  std::string pad_token = "<|endoftext|>";
  std::int64_t model_max_length = 77;  // where no file gives one: the positions that CLIP's text encoders have

  std::int64_t id_of(const std::string& content) const;
};

// `vocabulary` gives ids to the tokens it has; the others are numbered from its size on. `tokenizer_json_tokens` is
// that file's `added_tokens`, or an empty list. Throws WeightError naming the file and what is wrong with it.
ClipSpecialTokens read_clip_special_tokens(const std::filesystem::path& folder,
                                           const std::unordered_map<std::string, std::int64_t>& vocabulary,
                                           const Json& tokenizer_json_tokens);

// Writes tokenizer_config.json and special_tokens_map.json, each atomically.
void write_clip_special_tokens(FileSystem& files, const ClipSpecialTokens& special,
                               const std::filesystem::path& folder);

}  // namespace sdtune
