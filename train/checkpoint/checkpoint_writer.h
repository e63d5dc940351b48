// Saving: a checkpoint appears whole, under its name, or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/weights/safetensors_writer.h"
#include "train/checkpoint/run_state.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

// Tensors of one file, in the order of their names, read one after the other (safetensors_writer.h).
struct CheckpointTensors {
  std::vector<model::DeclaredTensor> tensors;
  std::function<torch::Tensor(std::size_t)> read;
};

// By parameter name, whichever ranks they come from.
struct CheckpointContent {
  CheckpointTensors weights;   // float32 masters
  CheckpointTensors states;    // of the optimizer
  CheckpointTensors averages;  // none without an average
};

// Of an optimizer that has all parameters; reads the tensors that training writes to.
CheckpointContent checkpoint_content(const Optimizer& optimizer, const model::NamedTensors& averages = {});

// The same in host memory of its own. Waits for the device.
CheckpointContent copy_to_host(const CheckpointContent& content);

class CheckpointWriter {
 public:
  // `checkpoints` is the folder they go into; `limit` of them are kept (unset: all).
  CheckpointWriter(FileSystem& files, std::filesystem::path checkpoints, std::optional<std::int64_t> limit);

  // Writes step-<state.step>: masters, states of the optimizer and the run into a .tmp folder, each synced, then the
  // manifest, then the rename; reads it back against the manifest, and only then removes older ones. A valid checkpoint
  // of that step is left as it is. `averages` are written beside them where there are any. Returns its path. Throws
  // StorageError; the checkpoints from before are then untouched. An old one that cannot be removed is no failure: NFS
  // keeps the folder of a file that another program reads.
  std::filesystem::path write(const Optimizer& optimizer, const RunState& state,
                              const model::NamedTensors& averages = {});
  std::filesystem::path write(const CheckpointContent& content, const RunState& state);

  // A valid checkpoint of that step, which write() would leave as it is; unset: there is none.
  std::optional<std::filesystem::path> find(std::int64_t step) const;

  // Why an old checkpoint could not be removed: of the first write() that met one, and told once.
  std::optional<Problem> take_warning() { return std::exchange(warning_, std::nullopt); }

 private:
  void write_files(const std::filesystem::path& folder, const CheckpointContent& content, const RunState& state);

  FileSystem& files_;
  std::filesystem::path checkpoints_;
  std::optional<std::int64_t> limit_;
  std::optional<Problem> warning_;
  bool has_warned_ = false;
};

}  // namespace sdtune::train
