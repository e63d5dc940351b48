#include "train/observe/step_lines.h"

#include "model/files/file_system.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sdtune::train {

namespace {

// The step of a line, or nothing when the line is not one of ours.
std::optional<std::int64_t> step_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  return json["step"].get<std::int64_t>();
}

// Without the newline; a last line that was cut short is none.
void for_each_line(std::string_view content, const std::function<void(std::string_view)>& use) {
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string_view::npos) return;
    use(content.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

bool has_step_line(const std::filesystem::path& path, std::int64_t step) {
  if (!is_file(path)) return false;
  bool found = false;
  for_each_line(read_file(path), [&](std::string_view line) { found = found || step_of(line) == step; });
  return found;
}

void StepLines::open(const std::filesystem::path& path, std::int64_t step) {
  path_ = path;
  try {
    drop_lines_after(step);
  } catch (const Error& error) {
    warn_once(error.problems().front().what);
  }
  const std::string failure = file_.open(path_);
  if (!failure.empty()) warn_once(failure);
}

void StepLines::drop_lines_after(std::int64_t step) {
  if (!is_file(path_)) return;
  const std::string content = read_file(path_);
  std::string kept;
  for_each_line(content, [&](std::string_view line) {
    const std::optional<std::int64_t> at = step_of(line);
    if (at && *at <= step) kept.append(line).append("\n");
  });
  if (kept != content) write_file_atomically(files_, path_, kept);
}

void StepLines::append(const Json& line) {
  const std::string failure = file_.append(line.dump() + "\n");
  if (!failure.empty()) warn_once(failure);
}

void StepLines::warn_once(const std::string& cause) {
  if (!std::exchange(warned_, true) && warn_) {
    warn_({path_.string(), "cannot be written: " + cause, "training continues without these lines"});
  }
}

}  // namespace sdtune::train
