#include "model/tokenizer/clip_special_tokens.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/base/error.h"
#include "model/files/json_file.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxModelLength = 4096;  // tokens; transformers writes 1e30 for "none"

// A token as a config file writes it: its text, or an object with flags.
struct ConfigToken {
  AddedToken token;
  bool plain = true;  // written as text alone
};

AddedToken token_from_object(const Json& json, bool special, const std::string& where, const std::string& key) {
  JsonObject object(json, where);
  AddedToken token;
  token.content = object.string("content", "");
  if (token.content.empty()) object.fail(key, "is a token without 'content'");
  token.special = object.boolean("special", special);
  token.single_word = object.boolean("single_word", false);
  token.lstrip = object.boolean("lstrip", false);
  token.rstrip = object.boolean("rstrip", false);
  token.normalized = object.boolean("normalized", !token.special);
  if (object.has("id")) token.id = object.integer("id");
  object.ignore("__type");
  object.finish();
  return token;
}

ConfigToken read_config_token(const Json& json, bool special, const std::string& where, const std::string& key) {
  if (json.is_string()) {
    AddedToken token;
    token.content = json.get<std::string>();
    token.special = true;
    token.normalized = false;
    return {token, true};
  }
  if (!json.is_object()) throw WeightError(where, key + " is not a token (got " + json.dump() + ")");
  return {token_from_object(json, special, where, key), false};
}

// Everything the small files say about tokens, merged as transformers merges it.
struct TokenSettings {
  std::vector<AddedToken> decoder;  // tokens listed with their ids, by id
  ConfigToken bos, eos, unk, pad;
  std::vector<ConfigToken> extra;
  std::int64_t model_max_length = ClipSpecialTokens().model_max_length;
};

void read_named_tokens(const Json& json, bool special, const std::string& where, TokenSettings& out) {
  const std::pair<const char*, ConfigToken*> named[] = {
      {"bos_token", &out.bos}, {"eos_token", &out.eos}, {"unk_token", &out.unk}, {"pad_token", &out.pad}};
  for (const auto& [key, token] : named) {
    if (json.contains(key) && !json[key].is_null()) *token = read_config_token(json[key], special, where, key);
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (!json.contains(key) || !json[key].is_array()) continue;
    for (const Json& entry : json[key]) out.extra.push_back(read_config_token(entry, true, where, key));
  }
}

bool is_named(const TokenSettings& settings, const std::string& content) {
  return settings.bos.token.content == content || settings.eos.token.content == content ||
         settings.unk.token.content == content || settings.pad.token.content == content;
}

std::int64_t read_model_max_length(const Json& json, const std::string& where) {
  const bool fits =
      json.is_number_integer() && json.get<std::int64_t>() >= 3 && json.get<std::int64_t>() <= kMaxModelLength;
  if (!fits) {
    throw WeightError(where, "model_max_length is out of range (got " + json.dump() + "; allowed: 3.." +
                                 std::to_string(kMaxModelLength) + ")");
  }
  return json.get<std::int64_t>();
}

Json read_object(const fs::path& path) {
  Json json = read_json(path);
  if (!json.is_object()) throw WeightError(path.string(), "is not a JSON object");
  return json;
}

std::int64_t parse_id(const std::string& text, const std::string& where) {
  const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) throw WeightError(where, "added_tokens_decoder has the id '" + text + "' (allowed: a whole number)");
  return std::stoll(text);
}

// The files from before `added_tokens_decoder` existed: special_tokens_map.json overrides, added_tokens.json adds.
void read_legacy_tokens(const fs::path& folder, const Json& tokenizer_json_tokens, TokenSettings& out) {
  const fs::path map = folder / "special_tokens_map.json";
  if (fs::exists(map)) read_named_tokens(read_object(map), true, map.string(), out);
  const fs::path added = folder / "added_tokens.json";
  if (fs::exists(added)) {
    const Json json = read_object(added);
    for (const auto& [content, id] : json.items()) {
      if (!id.is_number_unsigned()) throw WeightError(added.string(), "'" + content + "' has no id");
      AddedToken token;
      token.content = content;
      token.id = id.get<std::int64_t>();
      token.special = is_named(out, content);
      token.normalized = !token.special;
      out.decoder.push_back(token);
    }
  }
  const std::string where = (folder / "tokenizer.json").string();
  for (const Json& entry : tokenizer_json_tokens) {
    AddedToken token = token_from_object(entry, false, where, "added_tokens");
    std::erase_if(out.decoder, [&](const AddedToken& other) { return other.id == token.id; });
    out.decoder.push_back(std::move(token));
  }
}

TokenSettings read_token_settings(const fs::path& folder, const Json& tokenizer_json_tokens) {
  const ClipSpecialTokens defaults;
  TokenSettings out;
  out.bos = read_config_token(defaults.bos_token, true, "", "");
  out.eos = out.unk = out.pad = read_config_token(defaults.eos_token, true, "", "");
  const fs::path path = folder / "tokenizer_config.json";
  const Json config = fs::exists(path) ? read_object(path) : Json::object();
  const Json given = config.value("tokenizer_class", Json("CLIPTokenizer"));
  const std::string class_name = given.is_string() ? given.get<std::string>() : given.dump();
  if (class_name != "CLIPTokenizer" && class_name != "CLIPTokenizerFast") {
    throw WeightError(path.string(),
                      "tokenizer_class is not supported (got " + class_name + "; allowed: CLIPTokenizer)");
  }
  read_named_tokens(config, false, path.string(), out);
  if (config.contains("model_max_length")) {
    out.model_max_length = read_model_max_length(config["model_max_length"], path.string());
  }
  if (config.contains("added_tokens_decoder")) {
    for (const auto& [id, token] : config["added_tokens_decoder"].items()) {
      out.decoder.push_back(token_from_object(token, false, path.string(), "added_tokens_decoder"));
      out.decoder.back().id = parse_id(id, path.string());
    }
  } else {
    read_legacy_tokens(folder, tokenizer_json_tokens, out);
  }
  std::stable_sort(out.decoder.begin(), out.decoder.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  // A named token that is also listed with its flags has those flags.
  for (ConfigToken* named : {&out.bos, &out.eos, &out.unk, &out.pad}) {
    for (const AddedToken& listed : out.decoder) {
      if (listed.content == named->token.content) *named = {listed, false};
    }
  }
  return out;
}

// The order in which transformers adds tokens decides which flags a token keeps: a later one with the same text wins.
std::vector<AddedToken> tokens_to_add(const TokenSettings& settings) {
  std::vector<ConfigToken> queue;
  for (const AddedToken& token : settings.decoder) queue.push_back({token, false});
  const std::size_t listed = queue.size();
  std::vector<ConfigToken> candidates = {settings.bos, settings.eos, settings.unk, settings.pad};
  candidates.insert(candidates.end(), settings.extra.begin(), settings.extra.end());
  for (const ConfigToken& candidate : candidates) {
    const auto same_text = [&](const ConfigToken& other) { return other.token.content == candidate.token.content; };
    const bool is_listed = std::any_of(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(listed), same_text);
    const bool is_queued = std::any_of(queue.begin(), queue.end(), [&](const ConfigToken& other) {
      return same_text(other) && other.plain == candidate.plain;
    });
    if (!is_listed && !is_queued) queue.push_back(candidate);
  }
  std::vector<AddedToken> out;
  for (ConfigToken& entry : queue) {
    if (is_named(settings, entry.token.content)) entry.token.special = true;
    const auto known = std::find_if(out.begin(), out.end(),
                                    [&](const AddedToken& token) { return token.content == entry.token.content; });
    if (known != out.end()) {
      *known = entry.token;
    } else {
      out.push_back(entry.token);
    }
  }
  return out;
}

// transformers numbers by itself and lets a listed id be wrong; the text encoder's rows would then not fit.
void assign_ids(const std::unordered_map<std::string, std::int64_t>& vocabulary, const std::string& where,
                std::vector<AddedToken>& tokens) {
  auto next = static_cast<std::int64_t>(vocabulary.size());
  for (AddedToken& token : tokens) {
    const auto known = vocabulary.find(token.content);
    const std::int64_t id = known == vocabulary.end() ? next++ : known->second;
    if (token.id >= 0 && token.id != id) {
      throw WeightError(where, "token '" + token.content + "' is listed with the id " + std::to_string(token.id) +
                                   ", but the vocabulary makes it " + std::to_string(id) +
                                   ": the files do not belong together");
    }
    token.id = id;
  }
}

}  // namespace

std::int64_t ClipSpecialTokens::id_of(const std::string& content) const {
  return std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == content; })
      ->id;
}

ClipSpecialTokens read_clip_special_tokens(const fs::path& folder,
                                           const std::unordered_map<std::string, std::int64_t>& vocabulary,
                                           const Json& tokenizer_json_tokens) {
  const TokenSettings settings = read_token_settings(folder, tokenizer_json_tokens);
  ClipSpecialTokens out;
  out.tokens = tokens_to_add(settings);
  assign_ids(vocabulary, (folder / "tokenizer_config.json").string(), out.tokens);
  out.bos_token = settings.bos.token.content;
  out.eos_token = settings.eos.token.content;
  out.unk_token = settings.unk.token.content;
  out.pad_token = settings.pad.token.content;
  out.model_max_length = settings.model_max_length;
  return out;
}

void write_clip_special_tokens(FileSystem& files, const ClipSpecialTokens& special, const fs::path& folder) {
  const Json names = {{"bos_token", special.bos_token},
                      {"eos_token", special.eos_token},
                      {"pad_token", special.pad_token},
                      {"unk_token", special.unk_token}};
  Json decoder = Json::object();
  for (const AddedToken& token : special.tokens) {
    decoder[std::to_string(token.id)] = {{"content", token.content},         {"lstrip", token.lstrip},
                                         {"normalized", token.normalized},   {"rstrip", token.rstrip},
                                         {"single_word", token.single_word}, {"special", token.special}};
  }
  Json config = {{"add_prefix_space", false}, {"added_tokens_decoder", decoder}};
  config.update(names);
  config["do_lower_case"] = true;
  config["errors"] = "replace";
  config["model_max_length"] = special.model_max_length;
  config["tokenizer_class"] = "CLIPTokenizer";
  write_file_atomically(files, folder / "tokenizer_config.json", config.dump(2) + "\n");
  write_file_atomically(files, folder / "special_tokens_map.json", names.dump(2) + "\n");
}

}  // namespace sdtune
