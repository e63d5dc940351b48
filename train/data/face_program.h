// The program sdtune-faces as a process: started, spoken to line by line, and started anew after it failed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json.h"

namespace sdtune::train {

struct FaceProgramOptions {
  std::filesystem::path program;                                 // empty: sdtune-faces, beside this program
  std::chrono::milliseconds patience{std::chrono::seconds(60)};  // for the start, and for each image
};

// Not for several threads at once. Its process group is its own, so Ctrl-C in a terminal reaches sdtune alone, which
// may still need it for what it saves; it ends with its input, that is with this object or this process.
// (PR_SET_PDEATHSIG would end it with the thread that started it.)
class FaceProgram {
 public:
  // `arguments` as app/faces/main.cpp documents them. Throws DataError when the program is missing, does not start, or
  // says that it cannot use a model.
  FaceProgram(FaceProgramOptions options, std::vector<std::string> arguments);
  ~FaceProgram();
  FaceProgram(const FaceProgram&) = delete;
  FaceProgram& operator=(const FaceProgram&) = delete;

  // One request: `header` (an object, to which the request's number is added) and `bytes`, and the answer with the same
  // number. Throws DataError when the program has ended, answers nothing sensible, or takes longer than `patience`. It
  // is stopped then, so that a late answer is never read as that of the next request, which starts it anew.
  Json ask(Json header, std::string_view bytes);

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void stop() noexcept;
  void expect_ready();
  Json exchange(Json header, std::string_view bytes);
  void send(std::string_view bytes, Clock::time_point deadline);
  std::string read_line(Clock::time_point deadline);
  void wait_until_ready(short events, Clock::time_point deadline) const;

  FaceProgramOptions options_;
  std::vector<std::string> arguments_;
  pid_t process_ = -1;  // -1: not running
  int socket_ = -1;
  std::int64_t requests_ = 0;
  std::string received_;
};

}  // namespace sdtune::train
