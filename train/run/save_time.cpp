#include "train/run/save_time.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "train/optim/state_size.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kMostProbed = std::int64_t{64} << 20;

}  // namespace

std::int64_t checkpoint_bytes(const Run& run) {
  std::int64_t bytes = 0;
  for (const TrainedParameter& parameter : run.shards->parameters()) {
    bytes += saved_bytes(run.config.optim, parameter.weight.sizes());
  }
  return bytes;
}

double estimate_save_seconds(FileSystem& files, const Run& run) {
  const std::int64_t bytes = std::max<std::int64_t>(checkpoint_bytes(run), 1);
  const std::string content(static_cast<std::size_t>(std::min(bytes, kMostProbed)), '\x5a');
  const std::filesystem::path path = run.folder.root / ".save_time";
  const auto start = std::chrono::steady_clock::now();
  write_file_atomically(files, path, content);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  files.unlink(path);
  return seconds.count() * static_cast<double>(bytes) / static_cast<double>(content.size());
}

}  // namespace sdtune::train
