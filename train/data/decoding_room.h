// The memory that photos take while they are decoded, on as many threads as there are cores.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sdtune::train {

// A photo of 200 megapixels takes 2 GB, and a file of some hundred kilobytes may be one: a folder of them would fill
// the memory where each core decodes its own.
class DecodingRoom {
 public:
  explicit DecodingRoom(std::int64_t bytes) : bytes_(bytes) {}

  // A quarter of the machine's memory.
  static std::int64_t of_machine() {
    constexpr std::int64_t kLeast = std::int64_t{1} << 30;
    return std::max(kLeast, std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / 4);
  }

  // What one photo takes, while the object lives. Waits until there is room; alone a photo has it whatever it takes.
  class Share {
   public:
    Share(DecodingRoom& room, std::int64_t bytes) : room_(room), bytes_(bytes) {
      std::unique_lock lock(room_.mutex_);
      room_.changed_.wait(lock, [this] { return room_.taken_ == 0 || bytes_ <= room_.bytes_ - room_.taken_; });
      room_.taken_ += bytes_;
    }
    ~Share() {
      {
        const std::lock_guard lock(room_.mutex_);
        room_.taken_ -= bytes_;
      }
      room_.changed_.notify_all();
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    DecodingRoom& room_;
    std::int64_t bytes_;
  };

 private:
  std::int64_t bytes_;
  std::int64_t taken_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace sdtune::train
