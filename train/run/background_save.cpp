#include "train/run/background_save.h"

#include <chrono>
#include <utility>

namespace sdtune::train {

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundSave::begin(CheckpointCopy copy) {
  TORCH_CHECK(!thread_.joinable(), "a checkpoint is still being written");
  is_over_ = false;
  failure_ = nullptr;
  thread_ = std::thread([this, copy = std::move(copy)] { write(copy); });
}

SavedCheckpoint BackgroundSave::take() {
  thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::move(saved_);
}

void BackgroundSave::write(const CheckpointCopy& copy) noexcept {
  const auto start = std::chrono::steady_clock::now();
  try {
    saved_ = {copy.state.step, writer_.write(copy.content, copy.state), 0};
  } catch (...) {
    failure_ = std::current_exception();
  }
  saved_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  is_over_ = true;
}

}  // namespace sdtune::train
