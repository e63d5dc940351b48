#include "train/prove/json_lines.h"

#include <algorithm>
#include <utility>

#include "model/files/file_system.h"

namespace sdtune::train {

std::vector<Json> read_json_lines(const std::filesystem::path& file) {
  std::vector<Json> lines;
  if (!is_file(file)) return lines;
  const std::string content = read_file(file);
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    Json line = Json::parse(content.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (line.is_object()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

}  // namespace sdtune::train
