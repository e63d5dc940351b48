#include "train/observe/step_lines.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/files/file_system.h"
#include "model/files/read_pieces.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kLongestLogLine = std::size_t{1} << 20;  // bytes; a step's has less than 1000
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20;   // bytes

// The step of a line, or nothing when the line is not one of ours.
std::optional<std::int64_t> step_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  return json["step"].get<std::int64_t>();
}

}  // namespace

void for_each_line(const std::filesystem::path& path, const std::function<void(std::string_view)>& use) {
  std::string line;
  bool is_too_long = false;
  read_pieces(path, PageCache::kKeep, [&](std::span<const std::byte> piece) {
    std::string_view rest(reinterpret_cast<const char*>(piece.data()), piece.size());
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      line.append(rest.substr(0, end));
      if (!is_too_long) use(line);
      line.clear();
      is_too_long = false;
    }
    line.append(rest);  // a last line that was cut short stays here
    is_too_long = is_too_long || line.size() > kLongestLogLine;
    if (is_too_long) line.clear();
  });
}

bool has_step_line(const std::filesystem::path& path, std::int64_t step) {
  if (!is_file(path)) return false;
  bool found = false;
  for_each_line(path, [&](std::string_view line) { found = found || step_of(line) == step; });
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
  std::vector<bool> is_kept;  // of each line
  std::uintmax_t size = 0;    // of those that stay
  for_each_line(path_, [&](std::string_view line) {
    const std::optional<std::int64_t> at = step_of(line);
    is_kept.push_back(at && *at <= step);
    if (is_kept.back()) size += line.size() + 1;
  });
  std::error_code status;
  if (size == std::filesystem::file_size(path_, status)) return;
  write_file_atomically(files_, path_, [&](OutputFile& file) {
    std::string kept;
    std::size_t next = 0;
    for_each_line(path_, [&](std::string_view line) {
      if (next < is_kept.size() && is_kept[next++]) kept.append(line).append("\n");
      if (kept.size() < kWrittenAtOnce) return;
      file.write(std::as_bytes(std::span(kept)));
      kept.clear();
    });
    file.write(std::as_bytes(std::span(kept)));
  });
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
