// One rank as a child process: its output in pipes, in a process group of its own, and gone when `launch` is gone.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "app/launch/output_lines.h"
#include "app/launch/output_sink.h"

namespace sdtune::app {

// What a rank is started with.
struct RankStart {
  std::string program;                   // path
  std::vector<std::string> words;        // behind the program's name
  std::vector<std::string> environment;  // "NAME=value"
  sigset_t signals;                      // blocked in the rank
};

class RankProcess {
 public:
  // Throws StorageError when the system gives no pipe or process.
  RankProcess(std::int64_t rank, const RankStart& start);
  ~RankProcess();  // ends what is left of it
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  std::int64_t rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  bool runs() const { return runs_; }
  // To the rank and what it has started.
  void send(int signal);
  // SIGTERM to the rank because another one failed: queued, by which it knows that from one that is handed on, and ends
  // with 138.
  void stop();
  bool was_signalled() const { return signalled_; }
  // Whether it has ended since the last call; then also ends what it has left behind, and gives the status of waitpid:
  // exit code 1 where the kernel does not tell, since SIGCHLD is ignored.
  bool reap(int& status);
  // The pipe with its stdout (0) or stderr (1); -1 when closed.
  int pipe(int stream) const { return pipes_[stream]; }
  // Hands on what the pipe has and the sink has room for, in whole lines.
  void relay(int stream, OutputSink& sink);
  // Hands on the rest.
  void finish_output(int stream, OutputSink& sink);

 private:
  std::int64_t rank_;
  pid_t pid_ = -1;
  bool runs_ = false;
  bool signalled_ = false;
  int pipes_[2] = {-1, -1};
  OutputLines lines_[2];
};

}  // namespace sdtune::app
