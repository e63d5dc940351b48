// One checkpoint for all ranks. The first rank alone writes checkpoints, so without a shared disk no other machine has
// them, and what a machine has may be left from a run in which it was another rank.
#pragma once

#include <filesystem>
#include <memory>

#include "model/base/stop_flag.h"
#include "train/config/train_config.h"
#include "train/dist/process_group.h"
#include "train/resume/resume_point.h"

namespace sdtune::train {

// A folder that is removed at the end.
class ReceivedCheckpoint {
 public:
  explicit ReceivedCheckpoint(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~ReceivedCheckpoint();
  ReceivedCheckpoint(const ReceivedCheckpoint&) = delete;
  ReceivedCheckpoint& operator=(const ReceivedCheckpoint&) = delete;

 private:
  std::filesystem::path folder_;
};

// What the first rank resumes from, on every rank: `resume` of the others becomes a copy of it. A rank that has the
// same checkpoint whole, at the same path or among its own, reads that one; the others receive its files, once for each
// disk, into their run folders. Other checkpoints of theirs are warned of on the first rank. Returns what must live
// until every rank has loaded the checkpoint; null where nothing was received. Throws what send_files throws.
std::unique_ptr<ReceivedCheckpoint> share_checkpoint(ProcessGroup& group, const TrainConfig& config,
                                                     torch::Device device, ResumePoint& resume, const StopFlag& stop);

}  // namespace sdtune::train
