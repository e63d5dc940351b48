// Letters, digits and lower-case mappings of Unicode 15.1 to 17, which utf8proc 2.8 (Unicode 15.0) does not know. The
// tokenizers library behind transformers takes its character classes from Unicode 16 and its lower case from Unicode
// 17; tests/python/test_tokenizer.py compares all code points with it. Harmless beside a newer utf8proc: it then knows
// them too.
#pragma once

#include <array>

namespace sdtune::unicode {

struct Range {
  char32_t first;
  char32_t last;
};

inline constexpr std::array kNewLetters = {
    Range{0x1C89, 0x1C8A},   Range{0xA7CB, 0xA7CD},   Range{0xA7DA, 0xA7DC},   Range{0x105C0, 0x105F3},
    Range{0x10D4A, 0x10D65}, Range{0x10D6F, 0x10D85}, Range{0x10EC2, 0x10EC4}, Range{0x11380, 0x11389},
    Range{0x1138B, 0x1138B}, Range{0x1138E, 0x1138E}, Range{0x11390, 0x113B5}, Range{0x113B7, 0x113B7},
    Range{0x113D1, 0x113D1}, Range{0x113D3, 0x113D3}, Range{0x11BC0, 0x11BE0}, Range{0x13460, 0x143FA},
    Range{0x16100, 0x1611D}, Range{0x16D40, 0x16D6C}, Range{0x18CFF, 0x18CFF}, Range{0x1E5D0, 0x1E5ED},
    Range{0x1E5F0, 0x1E5F0}, Range{0x2EBF0, 0x2EE5D},
};

inline constexpr std::array kNewNumbers = {
    Range{0x10D40, 0x10D49}, Range{0x116D0, 0x116E3}, Range{0x11BF0, 0x11BF9}, Range{0x16130, 0x16139},
    Range{0x16D70, 0x16D79}, Range{0x1CCF0, 0x1CCF9}, Range{0x1E5F1, 0x1E5FA},
};

// Code points first..last have the lower case first + offset..
struct LowerCase {
  char32_t first;
  char32_t last;
  int offset;
};

inline constexpr std::array kNewLowerCase = {
    LowerCase{0x1C89, 0x1C89, 1},      LowerCase{0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    LowerCase{0xA7CC, 0xA7CC, 1},      LowerCase{0xA7CE, 0xA7CE, 1},
    LowerCase{0xA7D2, 0xA7D2, 1},      LowerCase{0xA7D4, 0xA7D4, 1},
    LowerCase{0xA7DA, 0xA7DA, 1},      LowerCase{0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    LowerCase{0x10D50, 0x10D65, 0x20}, LowerCase{0x16EA0, 0x16EB8, 0x1B},
};

}  // namespace sdtune::unicode
