// Our stdout or stderr, never waited for: a reader that stalls must keep no signal and no deadline from `launch`.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace sdtune::app {

class OutputSink {
 public:
  explicit OutputSink(int file) : file_(file) {}

  int file() const { return file_; }
  // Whether more should be read for it. A rank whose output is not read waits in its next write.
  bool has_room() const { return waiting_.size() < kRoom; }
  bool is_empty() const { return waiting_.empty(); }
  void add(std::string_view text);
  // Writes what the reader takes now. What a reader that went away would have got is dropped.
  void flush();
  // Likewise until all is written (true), or until the reader takes nothing for `limit`; then the rest is dropped.
  bool finish(std::chrono::milliseconds limit);

 private:
  static constexpr std::size_t kRoom = 1 << 20;  // bytes

  bool takes_bytes(int wait_ms) const;
  void write_part();

  int file_;
  std::string waiting_;
};

}  // namespace sdtune::app
