// A Python script beside the run, which speaks lines of JSON with it over a socket. Nothing here waits, except wait().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::train {

class ScriptProcess {
 public:
  static constexpr std::size_t kMostQueued = 16 << 20;  // bytes that wait for a script that does not read

  // Starts `words`, an interpreter first, in a session of its own, so that Ctrl-C in a terminal reaches the run alone.
  // The socket is its file descriptor 3; it reads nothing from its input and writes what it prints to `log`, which
  // grows (empty: nowhere). Throws StorageError where it cannot be started.
  ScriptProcess(const std::vector<std::string>& words, const std::filesystem::path& log);
  ~ScriptProcess();  // ends it: SIGTERM, and SIGKILL a second later
  ScriptProcess(const ScriptProcess&) = delete;
  ScriptProcess& operator=(const ScriptProcess&) = delete;

  // Puts a line into the queue and gives the script what it takes now. False where `most` bytes would wait then or the
  // script is gone: the line is lost.
  bool send(const Json& message, std::size_t most = kMostQueued);
  // The last line, which the script ends by: it has its place in a full queue, too.
  bool send_last(const Json& message) { return send(message, 2 * kMostQueued); }
  // The lines that have come since the last call. What is no JSON object is left out.
  std::vector<Json> replies();
  // Sends the rest and reads until the script ends. False when `seconds` are over before.
  bool wait(double seconds);
  // Whether it has closed its end of the socket, as it does when it ends.
  bool is_gone() const { return is_gone_; }

 private:
  void exchange(int milliseconds);
  void push();
  void pull();

  pid_t process_ = 0;
  int socket_ = -1;
  bool is_gone_ = false;
  std::string outgoing_, incoming_;
};

}  // namespace sdtune::train
