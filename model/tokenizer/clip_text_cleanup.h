// What CLIP does to a text before it looks for words: NFC, white space, lower case; and what a word is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sdtune {

// Code points of UTF-8 text. Throws DataError naming the byte where the text is not UTF-8.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

// Canonical composition (NFC), each run of white space as one space, lower case character by character. Takes time
// n log n, also for long runs of combining marks.
std::u32string clean_clip_text(std::u32string_view text);

// Pieces of cleaned text by CLIP's word pattern, in UTF-8: contractions ('s 't 're 've 'm 'll 'd), runs of letters,
// single digits, runs of other characters. White space separates and is dropped.
std::vector<std::string> split_clip_words(std::u32string_view cleaned);

// White space as Unicode's property White_Space has it.
bool is_white_space(char32_t code_point);
// A letter, mark, digit or connector, as the regex class \w.
bool is_word_character(char32_t code_point);

}  // namespace sdtune
