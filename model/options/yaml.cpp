#include "model/options/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "model/base/error.h"

namespace sdtune {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDepth = 32;

std::string place(const std::string& where, int line) {
  return where + ":" + std::to_string(line);
}

// The length of the UTF-8 sequence at `at`, or 0 when it is not one (overlong forms, surrogates and values above
// U+10FFFF included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t offset) -> unsigned {
    return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0u;
  };
  const auto continues = [&](std::size_t offset) { return (byte(offset) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

// What yaml-cpp lets pass, or reports without a useful place.
void check_bytes(std::string_view text, const std::string& where) {
  if (text.size() > kMaxBytes) {
    throw ConfigError(where, "is too large (got " + std::to_string(text.size()) + " bytes; allowed: 1 MiB)");
  }
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw ConfigError(place(where, 1), "begins with a byte order mark", "save it as UTF-8 without BOM");
  }
  int line = 1;
  bool indentation = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = utf8_length(text, at);
    if (length == 0) throw ConfigError(place(where, line), "is not UTF-8");
    if (indentation && c == '\t') throw ConfigError(place(where, line), "is indented with a tab (allowed: spaces)");
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F) {
      throw ConfigError(place(where, line), "holds the control character " + std::to_string(byte));
    }
    indentation = c == '\n' || (indentation && c == ' ');
    if (c == '\n') ++line;
    at += length;
  }
}

// Builds the tree from yaml-cpp's events. The events come before any alias is expanded, so a bomb costs nothing.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view source, std::string where) : source_(source), where_(std::move(where)) {}

  YamlValue root() { return std::move(root_); }
  const std::vector<Problem>& duplicates() const { return duplicates_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(YamlValue{YamlValue::Kind::kNull, line_of(mark), "", false, {}, {}});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw ConfigError(place(where_, line_of(mark)), "anchors and aliases are not allowed; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    const bool quoted = tag == "!";  // yaml-cpp's mark of a scalar in quotes or a block
    if (!quoted) refuse_tag(mark, tag);
    if (quoted) refuse_open_quote(mark);
    const bool null = !quoted && (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
    if (null && expects_value()) {
      add(YamlValue{YamlValue::Kind::kNull, line_of(mark), "", false, {}, {}});
    } else {
      add(YamlValue{YamlValue::Kind::kScalar, line_of(mark), text, quoted, {}, {}});
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::kMapping);
  }
  void OnMapEnd() override { close(); }

 private:
  // A sequence or mapping that is not closed yet, with the key that waits for its value.
  struct Open {
    YamlValue value;
    std::optional<std::string> key;
    std::map<std::string, int> lines = {};  // of the keys: a search for each among all before it would have no end
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      throw ConfigError(place(where_, line_of(mark)), "anchors and aliases are not allowed; write the value out");
    }
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?") {
      throw ConfigError(place(where_, line_of(mark)), "tags are not allowed (got " + tag + ")");
    }
  }

  // yaml-cpp takes the end of the file for a closing quote when a line break precedes it.
  void refuse_open_quote(const YAML::Mark& mark) const {
    const auto start = static_cast<std::size_t>(mark.pos);
    if (start >= source_.size() || (source_[start] != '"' && source_[start] != '\'')) return;  // a block scalar
    const char quote = source_[start];
    for (std::size_t at = start + 1; at < source_.size(); ++at) {
      const bool doubled = quote == '\'' && source_.substr(at, 2) == "''";
      const bool escaped = quote == '"' && source_[at] == '\\';
      if (doubled || escaped) {
        ++at;
      } else if (source_[at] == quote) {
        return;
      }
    }
    throw ConfigError(place(where_, line_of(mark)), "a quote is not closed");
  }

  bool expects_value() const {
    return open_.empty() || open_.back().value.kind != YamlValue::Kind::kMapping || open_.back().key.has_value();
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlValue::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= kMaxDepth) {
      throw ConfigError(place(where_, line_of(mark)), "is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (!expects_value()) throw ConfigError(place(where_, line_of(mark)), "a key must be a word");
    open_.push_back(Open{YamlValue{kind, line_of(mark), "", false, {}, {}}, {}});
  }

  void close() {
    YamlValue value = std::move(open_.back().value);
    open_.pop_back();
    add(std::move(value));
  }

  void add(YamlValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.kind == YamlValue::Kind::kSequence) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.key) {
      add_key(parent, value);
    } else {
      parent.value.entries.emplace_back(std::move(*parent.key), std::move(value));
      parent.key.reset();
    }
  }

  void add_key(Open& parent, const YamlValue& key) {
    if (key.kind != YamlValue::Kind::kScalar) throw ConfigError(place(where_, key.line), "a key must be a word");
    const auto [first, is_new] = parent.lines.emplace(key.text, key.line);
    if (!is_new) {
      duplicates_.push_back(
          {place(where_, key.line),
           "key " + key.text + " is given twice (first in line " + std::to_string(first->second) + ")", ""});
    }
    parent.key = key.text;
  }

  std::string_view source_;
  std::string where_;
  std::vector<Open> open_;
  YamlValue root_;
  std::vector<Problem> duplicates_;
};

}  // namespace

YamlValue parse_yaml(std::string_view text, const std::string& where) {
  check_bytes(text, where);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(text, where);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return YamlValue();
    TreeBuilder second(text, where);
    if (parser.HandleNextDocument(second)) throw ConfigError(where, "holds more than one document");
  } catch (const YAML::Exception& error) {
    throw ConfigError(place(where, error.mark.is_null() ? 1 : error.mark.line + 1), "is not YAML: " + error.msg);
  }
  if (!builder.duplicates().empty()) throw ConfigError(builder.duplicates());
  return builder.root();
}

YamlValue read_yaml(const std::filesystem::path& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) throw ConfigError(path.string(), "is a folder, not a YAML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(path.string(), "cannot be read", "name an existing YAML file");
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_yaml(text, path.string());
}

}  // namespace sdtune
