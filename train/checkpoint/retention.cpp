#include "train/checkpoint/retention.h"

#include "model/base/manifest.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace sdtune::train {

void remove_old_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints, std::int64_t verified_step,
                            std::optional<std::int64_t> limit) {
  for (const std::filesystem::path& unfinished : list_unfinished(checkpoints)) files.remove_tree(unfinished);
  if (!limit) return;
  std::int64_t kept = 0;
  for (const CheckpointFolder& checkpoint : list_checkpoints(checkpoints)) {
    ++kept;
    if (kept <= *limit || checkpoint.step >= verified_step) continue;
    // Without its manifest it is no checkpoint any more, so a kill in between leaves nothing that looks whole.
    if (std::filesystem::exists(checkpoint.path / kManifestName)) files.unlink(checkpoint.path / kManifestName);
    files.remove_tree(checkpoint.path);
  }
}

}  // namespace sdtune::train
