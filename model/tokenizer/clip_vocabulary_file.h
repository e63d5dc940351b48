// The vocabulary of a CLIP tokenizer folder: vocab.json + merges.txt, or tokenizer.json, which wins where both are (as
// in transformers 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/tokenizer/clip_bpe.h"

namespace sdtune {

struct ClipVocabulary {
  std::unordered_map<std::string, std::int64_t> ids;  // token -> id; ids 0..size-1, each once
  std::vector<MergeRule> merges;                      // in order of rank
  std::string merges_where;                           // the file they came from
  Json tokenizer_json_tokens = Json::array();         // `added_tokens` of tokenizer.json
};

// Throws WeightError naming the file: absent, malformed, ids that are not 0..size-1.
ClipVocabulary read_clip_vocabulary(const std::filesystem::path& folder);

// Writes vocab.json and merges.txt, each atomically.
void write_clip_vocabulary(FileSystem& files, const ClipBpe& bpe, const std::filesystem::path& folder);

}  // namespace sdtune
