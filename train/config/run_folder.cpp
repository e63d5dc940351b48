#include "train/config/run_folder.h"

#include "model/files/file_system.h"

namespace sdtune::train {

namespace fs = std::filesystem;

std::string RunFolder::name() const {
  return folder_name(root);
}

bool RunFolder::has_run() const {
  return fs::exists(record()) || fs::exists(checkpoints()) || fs::exists(model()) || fs::exists(metrics());
}

RunFolder run_folder(const TrainConfig& config) {
  if (!config.run.output.empty()) return {config.run.output};
  const fs::path images = fs::path(config.data.images).lexically_normal();
  const fs::path name = images.has_filename() ? images.filename() : images.parent_path().filename();
  const bool is_named = !name.empty() && name != "." && name != "..";
  return {fs::path("runs") / (is_named ? name : fs::path("run"))};
}

}  // namespace sdtune::train
