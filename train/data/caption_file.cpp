#include "train/data/caption_file.h"

#include <utf8proc.h>

#include <cstddef>
#include <string_view>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kMaxCaptionBytes = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kSpace = " \t\r\n\f\v";

void require_utf8(std::string_view text, const std::string& where) {
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (length <= 0) {
      throw DataError(where, "the caption is not UTF-8 at byte " + std::to_string(at), "save it as UTF-8 text");
    }
    at += static_cast<std::size_t>(length);
  }
}

}  // namespace

std::string clean_caption(std::string_view text, const std::string& where) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  require_utf8(text, where);
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    throw DataError(where, "the caption is empty", "write a caption, or remove it to use instance_prompt");
  }
  std::string caption(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
  for (char& letter : caption) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return caption;
}

std::string read_caption(const std::filesystem::path& path) {
  return clean_caption(read_file(path, kMaxCaptionBytes), path.string());
}

}  // namespace sdtune::train
