#include "model/tokenizer/clip_vocabulary_file.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "model/base/error.h"
#include "model/tokenizer/token_ids.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

MergeRule split_merge(std::string_view line, const std::string& where, std::size_t number) {
  const std::size_t space = line.find(' ');
  const bool two = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                   line.find(' ', space + 1) == std::string_view::npos;
  if (!two) throw WeightError(where + ":" + std::to_string(number), "a merge is two tokens with a space between");
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

std::vector<MergeRule> read_merges_txt(const fs::path& path) {
  const std::string text = read_file(path, kMostTokenizerBytes);
  std::vector<MergeRule> merges;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (!line.starts_with("#version")) merges.push_back(split_merge(line, path.string(), number));
    at = end + 1;
  }
  return merges;
}

// Merges of tokenizer.json: "a b", or since tokenizers 0.20 ["a", "b"].
std::vector<MergeRule> read_merges_json(const SortedJson& json, const std::string& where) {
  if (!json.is_array()) throw WeightError(where, "model.merges is not a list");
  std::vector<MergeRule> merges;
  for (const SortedJson& merge : json) {
    const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (pair) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else if (merge.is_string()) {
      merges.push_back(split_merge(merge.get_ref<const std::string&>(), where, merges.size() + 1));
    } else {
      throw WeightError(where, "model.merges has " + merge.dump() + " (allowed: two tokens)");
    }
  }
  return merges;
}

void read_single_file(const fs::path& path, ClipVocabulary& out) {
  TokenizerJson parsed = read_tokenizer_json(path, {"model", "vocab"});
  const SortedJson& json = parsed.json;
  const std::string where = path.string();
  if (!json.is_object() || !json.contains("model") || !json["model"].is_object()) {
    throw WeightError(where, "has no object 'model'");
  }
  const SortedJson& model = json["model"];
  const SortedJson bpe = "BPE", suffix = "</w>";  // compared as JSON: a file may hold anything there
  if (model.value("type", bpe) != bpe || model.value("end_of_word_suffix", suffix) != suffix) {
    throw WeightError(where, "is not a CLIP tokenizer (allowed: model type BPE with the end-of-word suffix </w>)");
  }
  if (!model.contains("vocab") || !model.contains("merges")) throw WeightError(where, "model lacks vocab or merges");
  out.ids = std::move(parsed.tokens).checked(where);
  out.merges = read_merges_json(model["merges"], where);
  if (json.contains("added_tokens")) out.tokenizer_json_tokens = parse_json(json["added_tokens"].dump(), where);
  out.merges_where = where;
}

}  // namespace

ClipVocabulary read_clip_vocabulary(const fs::path& folder) {
  ClipVocabulary out;
  const fs::path single = folder / "tokenizer.json";
  if (fs::exists(single)) {
    read_single_file(single, out);
    return out;
  }
  const fs::path vocabulary = folder / "vocab.json";
  const fs::path merges = folder / "merges.txt";
  for (const fs::path& path : {vocabulary, merges}) {
    if (!fs::exists(path)) {
      throw WeightError(path.string(), "is missing: a tokenizer is vocab.json and merges.txt, or tokenizer.json");
    }
  }
  out.ids = read_tokenizer_json(vocabulary, {}).tokens.checked(vocabulary.string());
  out.merges = read_merges_txt(merges);
  out.merges_where = merges.string();
  return out;
}

void write_clip_vocabulary(FileSystem& files, const ClipBpe& bpe, const fs::path& folder) {
  std::vector<const std::string*> tokens(bpe.vocabulary().size());
  for (const auto& [token, id] : bpe.vocabulary()) tokens[static_cast<std::size_t>(id)] = &token;
  std::string vocabulary = "{";
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocabulary += (id == 0 ? "" : ", ") + SortedJson(*tokens[id]).dump() + ": " + std::to_string(id);
  }
  vocabulary += "}\n";
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : bpe.merges()) merges += left + " " + right + "\n";
  write_file_atomically(files, folder / "vocab.json", vocabulary);
  write_file_atomically(files, folder / "merges.txt", merges);
}

}  // namespace sdtune
