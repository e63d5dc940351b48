// A GPU of which only the calls exist: what a program would have run on it is counted, by part of the program, and
// nothing is computed. docs/gpu.md says what follows from it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace sdtune::record {

struct Tally {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  // read and written
};

// What one part of a program asked of the GPU.
struct Part {
  std::map<std::string, Tally> operators;      // that are no view and no allocation, by name
  std::map<std::string, Tally> layout_copies;  // that change the memory order alone; among the operators too
  std::map<std::string, std::int64_t> waits;   // what the host waited for
  std::int64_t copies_to_host = 0;             // without a wait, or counted as a wait as well
  std::int64_t copies_to_device = 0;
  std::int64_t live_bytes = 0;  // of the GPU's memory, when the part ended or now
  std::int64_t peak_bytes = 0;  // the most at any time of it
};

class Record {
 public:
  // The one of the process: backward passes run on a thread of LibTorch's.
  static Record& instance();

  // What follows belongs to the part `name`, again where it is known.
  void begin(const std::string& name);
  void add_operator(const std::string& name, std::int64_t bytes);
  void add_layout_copy(const std::string& what, std::int64_t bytes);
  void add_wait(const std::string& what);
  void add_copy(bool to_host);
  // Memory that was given out, or came back (negative).
  void add_memory(std::int64_t bytes);
  std::int64_t live_bytes() const;
  std::int64_t peak_bytes() const;  // since the process began
  // Operators since the process began: the clock of the events.
  std::int64_t position() const;
  // {PART: {"operators": {NAME: [calls, bytes], ...}, "layout_copies": ..., "waits": {WHAT: count}, ...}, ...}
  std::string json() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Part> parts_;
  std::string current_ = "before";
  std::int64_t position_ = 0;
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace sdtune::record
