// The word pattern is scanned by hand over utf8proc's character classes rather than matched by a regex engine: one
// pass, no backtracking limits, and the classes do not change with the engine's Unicode version.
#include "model/tokenizer/clip_text_cleanup.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>

#include "model/base/error.h"
#include "model/tokenizer/unicode_additions.h"

namespace sdtune {
namespace {

enum class CharacterClass { kSpace, kLetter, kNumber, kOther };

// `ranges` ascend.
bool contains(std::span<const unicode::Range> ranges, char32_t code_point) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                      [](char32_t value, const unicode::Range& range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

CharacterClass class_of(char32_t code_point) {
  if (is_white_space(code_point)) return CharacterClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::kNumber;
    case UTF8PROC_CATEGORY_CN:
      if (contains(unicode::kNewLetters, code_point)) return CharacterClass::kLetter;
      if (contains(unicode::kNewNumbers, code_point)) return CharacterClass::kNumber;
      return CharacterClass::kOther;
    default:
      return CharacterClass::kOther;
  }
}

void append_lower_case(char32_t code_point, std::u32string& out) {
  // The one character whose lower case is two: capital I with dot above.
  if (code_point == 0x130) {
    out += U"i\u0307";
    return;
  }
  for (const unicode::LowerCase& range : unicode::kNewLowerCase) {
    if (code_point >= range.first && code_point <= range.last) {
      out += static_cast<char32_t>(static_cast<int>(code_point) + range.offset);
      return;
    }
  }
  out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
}

int combining_class(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

// Canonical decomposition in canonical order. utf8proc_decompose would do it, but orders marks by exchanging
// neighbours.
std::vector<utf8proc_int32_t> decompose(std::u32string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size() + 1);
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  std::array<utf8proc_int32_t, 32> buffer;
  for (const char32_t code_point : text) {
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), buffer.data(),
                                                           std::ssize(buffer), kOptions, &boundary);
    out.insert(out.end(), buffer.begin(), buffer.begin() + std::min(count, std::ssize(buffer)));
  }
  for (auto first = out.begin(); first != out.end();) {
    first = std::find_if(first, out.end(), [](auto code_point) { return combining_class(code_point) != 0; });
    const auto last = std::find_if(first, out.end(), [](auto code_point) { return combining_class(code_point) == 0; });
    std::stable_sort(first, last, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    first = last;
  }
  return out;
}

std::u32string compose(std::vector<utf8proc_int32_t> code_points) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), kOptions);
  return std::u32string(code_points.begin(), code_points.begin() + length);
}

// Canonical composition by the tables of Unicode 9: marks that are newer separate what may compose.
std::u32string normalize(std::u32string_view text) {
  std::u32string out;
  const auto is_new = [](char32_t code_point) { return contains(unicode::kNewMarks, code_point); };
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if(at, text.end(), is_new);
    out += compose(decompose(std::u32string_view(at, end)));
    if (end != text.end()) out += *end;
    at = end == text.end() ? end : end + 1;
  }
  return out;
}

// The length of the contraction or written-out special token at the start of `text`, 0 for none.
std::size_t literal_length(std::u32string_view text) {
  static constexpr std::array<std::u32string_view, 9> kLiterals = {
      U"<|startoftext|>", U"<|endoftext|>", U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"};
  for (const std::u32string_view literal : kLiterals) {
    if (text.starts_with(literal)) return literal.size();
  }
  return 0;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code_point = -1;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (length <= 0) {
      throw DataError("text", "is not UTF-8 at byte " + std::to_string(at), "save the text as UTF-8");
    }
    out += static_cast<char32_t>(code_point);
    at += static_cast<std::size_t>(length);
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t code_point : text) {
    std::array<utf8proc_uint8_t, 4> bytes;
    const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
  }
  return out;
}

std::u32string clean_clip_text(std::u32string_view text) {
  const std::u32string composed = normalize(text);
  std::u32string out;
  out.reserve(composed.size());
  bool in_space = false;
  for (const char32_t code_point : composed) {
    const bool space = is_white_space(code_point);
    if (!space) append_lower_case(code_point, out);
    if (space && !in_space) out += U' ';
    in_space = space;
  }
  return out;
}

std::vector<std::string> split_clip_words(std::u32string_view cleaned) {
  // A written-out special token that is not one of the tokenizer's falls into three words, since a second, byte-level
  // pattern without the literals runs over what the first one found.
  constexpr std::size_t kBracket = 2;
  std::vector<std::string> words;
  const auto emit = [&](std::size_t at, std::size_t length) {
    words.push_back(encode_utf8(cleaned.substr(at, length)));
  };
  for (std::size_t at = 0; at < cleaned.size();) {
    if (const std::size_t length = literal_length(cleaned.substr(at)); length > 0) {
      if (cleaned[at] == U'<') {
        emit(at, kBracket);
        emit(at + kBracket, length - 2 * kBracket);
        emit(at + length - kBracket, kBracket);
      } else {
        emit(at, length);
      }
      at += length;
      continue;
    }
    const CharacterClass kind = class_of(cleaned[at]);
    std::size_t end = at + 1;
    while (kind != CharacterClass::kNumber && end < cleaned.size() && class_of(cleaned[end]) == kind) ++end;
    if (kind != CharacterClass::kSpace) emit(at, end - at);
    at = end;
  }
  return words;
}

bool is_white_space(char32_t code_point) {
  switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (code_point >= 0x9 && code_point <= 0xD) || (code_point >= 0x2000 && code_point <= 0x200A);
  }
}

bool is_word_character(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_ND:
      return true;
    default:
      return class_of(code_point) == CharacterClass::kLetter;
  }
}

}  // namespace sdtune
