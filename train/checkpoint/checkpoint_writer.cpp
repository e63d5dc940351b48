#include "train/checkpoint/checkpoint_writer.h"

#include <utility>

#include "model/files/manifest.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/hashing_file_system.h"

namespace sdtune::train {

namespace fs = std::filesystem;

CheckpointWriter::CheckpointWriter(FileSystem& files, fs::path checkpoints, std::optional<std::int64_t> limit)
    : files_(files), checkpoints_(std::move(checkpoints)), limit_(limit) {}

fs::path CheckpointWriter::write(const Optimizer& optimizer, const RunState& state,
                                 const model::NamedTensors& averages) {
  const fs::path final_path = checkpoint_path(checkpoints_, state.step);
  if (fs::exists(final_path)) {
    if (checkpoint_faults(final_path).empty()) return final_path;
    files_.remove_tree(final_path);
  }
  const fs::path temporary = temporary_path(final_path);
  if (fs::exists(temporary)) files_.remove_tree(temporary);
  files_.create_directories(temporary);
  write_files(temporary, optimizer, state, averages);
  files_.sync_directory(temporary);
  files_.rename(temporary, final_path);
  files_.sync_directory(checkpoints_);
  const std::vector<Problem> faults = checkpoint_faults(final_path);
  if (!faults.empty()) throw StorageError(faults);
  remove_old_checkpoints(files_, checkpoints_, state.step, limit_);
  return final_path;
}

void CheckpointWriter::write_files(const fs::path& folder, const Optimizer& optimizer, const RunState& state,
                                   const model::NamedTensors& averages) {
  HashingFileSystem hashing(files_, folder);
  model::NamedTensors weights;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    weights.emplace_back(optimizer.parameters()[i].name, optimizer.masters()[i]);
  }
  model::write_safetensors(hashing, folder / kWeightsFile, std::move(weights));
  model::write_safetensors(hashing, folder / kOptimizerFile, optimizer.states());
  if (!averages.empty()) model::write_safetensors(hashing, folder / kAveragesFile, averages);
  write_file_atomically(hashing, folder / kStateFile, state.to_json().dump(2) + "\n");
  hashing.manifest().write(files_, folder);
}

}  // namespace sdtune::train
