#include "app/launch/rank_group.h"

#include <poll.h>

#include <algorithm>
#include <string>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

constexpr std::chrono::milliseconds kNoticeTime{5000};
constexpr std::chrono::milliseconds kLastWords{2000};
constexpr int kPollMs = 200;  // also for an end whose SIGCHLD was merged with another one

}  // namespace

void RankGroup::start(std::int64_t rank, const RankStart& start) {
  ranks_.push_back(std::make_unique<RankProcess>(rank, start));
}

bool RankGroup::any_runs() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->runs(); });
}

void RankGroup::wait() {
  while (any_runs()) {
    wait_for_news();
    relay_output();
    take_signals();
    take_ends();
    stop_late_ones();
  }
  relay_last_words();
}

// What is left in pipes and sinks.
void RankGroup::relay_last_words() {
  for (int stream = 0; stream < 2; ++stream) {
    while (!sinks_[stream].is_empty() && sinks_[stream].finish(kLastWords)) {
      for (const auto& rank : ranks_) rank->finish_output(stream, sinks_[stream]);
    }
  }
}

void RankGroup::wait_for_news() const {
  std::vector<pollfd> files{{signals_->file(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    for (int stream = 0; stream < 2; ++stream) {
      if (rank->pipe(stream) >= 0 && sinks_[stream].has_room()) files.push_back({rank->pipe(stream), POLLIN, 0});
    }
  }
  for (const OutputSink& sink : sinks_) {
    if (!sink.is_empty()) files.push_back({sink.file(), POLLOUT, 0});
  }
  ::poll(files.data(), files.size(), kPollMs);
}

void RankGroup::relay_output() {
  for (int stream = 0; stream < 2; ++stream) {
    sinks_[stream].flush();
    for (const auto& rank : ranks_) rank->relay(stream, sinks_[stream]);
  }
}

void RankGroup::say(const std::string& line) {
  sinks_[1].add("sdtune: launch: " + line + "\n");
  if (!any_runs()) sinks_[1].finish(kLastWords);
}

void RankGroup::take_signals() {
  while (const int signal = signals_->next()) {
    if (signal == SIGCHLD) continue;
    if (forwarded_ == 0) forwarded_ = signal;
    send_all(signal);
  }
}

void RankGroup::take_ends() {
  for (const auto& rank : ranks_) {
    int status = 0;
    if (!rank->reap(status)) continue;
    for (int stream = 0; stream < 2; ++stream) rank->finish_output(stream, sinks_[stream]);
    take_end({rank->rank(), status, rank->was_signalled()});
  }
}

void RankGroup::take_end(const RankEnd& end) {
  ends_.push_back(end);
  const int code = exit_code(end);
  if (code == 0) return;
  // Killed by the signal, before it could handle it: the others may wait for it.
  const bool as_asked =
      forwarded_ != 0 && was_orderly(end) &&
      (code == static_cast<int>(ExitCode::kInterrupted) || code == static_cast<int>(ExitCode::kTerminated));
  if (as_asked) return;  // another one may still be saving
  if (stage_ != Stage::kRunning || !any_runs()) return;
  say("rank " + std::to_string(end.rank) + " " + describe(end) + "; the other ranks are stopped");
  stage_ = Stage::kNoticing;
  deadline_ = Clock::now() + kNoticeTime;
}

void RankGroup::stop_late_ones() {
  if (stage_ == Stage::kRunning || stage_ == Stage::kKilled || Clock::now() < deadline_) return;
  if (stage_ == Stage::kNoticing) {
    for (const auto& rank : ranks_) rank->stop();
    stage_ = Stage::kAsked;
    deadline_ = Clock::now() + grace_;
  } else {
    send_all(SIGKILL);
    stage_ = Stage::kKilled;
  }
}

void RankGroup::send_all(int signal) {
  for (const auto& rank : ranks_) rank->send(signal);
}

}  // namespace sdtune::app
