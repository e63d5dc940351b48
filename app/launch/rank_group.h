// The ranks of this machine, from their start to the end of the last one.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/launch/rank_end.h"
#include "app/launch/rank_process.h"
#include "app/launch/signal_reader.h"

namespace sdtune::app {

class RankGroup {
 public:
  // `grace`: between SIGTERM and SIGKILL once a rank has failed.
  RankGroup(SignalReader& signals, std::chrono::milliseconds grace) : signals_(&signals), grace_(grace) {}

  void start(std::int64_t rank, const RankStart& start);
  // Relays output and signals until no rank is left. After the first failure the others have five seconds to notice it
  // themselves, since their messages name what was lost; then they are stopped. A rank that saved and ended because of
  // a signal that was handed on is no failure; one that the signal killed is, since the others may wait for it.
  void wait();

  const std::vector<RankEnd>& ends() const { return ends_; }  // in the order of time
  int forwarded() const { return forwarded_; }                // the first signal that was handed on, 0 for none
  // A line to stderr, behind what the ranks have printed.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage { kRunning, kNoticing, kAsked, kKilled };

  bool any_runs() const;
  void wait_for_news() const;
  void relay_output();
  void relay_last_words();
  void take_signals();
  void take_ends();
  void take_end(const RankEnd& end);
  void stop_late_ones();
  void send_all(int signal);

  SignalReader* signals_;
  std::chrono::milliseconds grace_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  OutputSink sinks_[2]{OutputSink(STDOUT_FILENO), OutputSink(STDERR_FILENO)};
  std::vector<RankEnd> ends_;
  Stage stage_ = Stage::kRunning;
  Clock::time_point deadline_;
  int forwarded_ = 0;
};

}  // namespace sdtune::app
