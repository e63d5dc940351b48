#include "app/launch/output_lines.h"

namespace sdtune::app {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

}  // namespace

std::string OutputLines::add(std::string_view bytes) {
  std::string lines;
  for (const char byte : bytes) {
    if (byte != '\n') open_ += byte;
    if (byte == '\n' || open_.size() >= kLongestLine) {
      lines += prefix_ + open_ + '\n';
      open_.clear();
    }
  }
  return lines;
}

std::string OutputLines::finish() {
  if (open_.empty()) return "";
  std::string line = prefix_ + open_ + '\n';
  open_.clear();
  return line;
}

}  // namespace sdtune::app
