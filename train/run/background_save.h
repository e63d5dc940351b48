// A checkpoint that a thread of its own writes while a GPU trains on: hashing, writing, syncing and reading back 10 GB
// (SD 1.5 with its optimizer) take a host many seconds, in which the GPU would wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/run_state.h"

namespace sdtune::train {

// What a checkpoint is made of, in memory that training does not write to.
struct CheckpointCopy {
  CheckpointContent content;
  RunState state;
};

struct SavedCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
  double seconds = 0;  // of writing
};

class BackgroundSave {
 public:
  explicit BackgroundSave(CheckpointWriter& writer) : writer_(writer) {}
  ~BackgroundSave();  // waits; what writing threw is lost
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // Begins to write. The one before must have been taken.
  void begin(CheckpointCopy copy);
  // Whether there is one to take, and whether taking it would not wait.
  bool is_begun() const { return thread_.joinable(); }
  bool is_over() const { return is_begun() && is_over_; }
  // Waits for what was begun. Throws what writing threw: StorageError. Either way the next one may begin.
  SavedCheckpoint take();

 private:
  void write(const CheckpointCopy& copy) noexcept;

  CheckpointWriter& writer_;
  std::thread thread_;
  std::atomic<bool> is_over_ = false;
  SavedCheckpoint saved_;       // of the thread, until it is over
  std::exception_ptr failure_;  // likewise
};

}  // namespace sdtune::train
