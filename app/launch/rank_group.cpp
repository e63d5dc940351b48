#include "app/launch/rank_group.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

constexpr std::chrono::milliseconds kNoticeTime{5000};
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
    relay_ready();
    take_signals();
    take_ends();
    stop_late_ones();
  }
}

void RankGroup::relay_ready() {
  std::vector<pollfd> files{{signals_->file(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    for (int stream = 0; stream < 2; ++stream) {
      if (rank->pipe(stream) >= 0) files.push_back({rank->pipe(stream), POLLIN, 0});
    }
  }
  ::poll(files.data(), files.size(), kPollMs);
  for (const auto& rank : ranks_) {
    for (int stream = 0; stream < 2; ++stream) rank->relay(stream);
  }
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
    rank->finish_output();
    take_end({rank->rank(), status, rank->was_signalled()});
  }
}

void RankGroup::take_end(const RankEnd& end) {
  ends_.push_back(end);
  const int code = exit_code(end);
  if (code == 0) return;
  const bool as_asked = forwarded_ != 0 && (code == static_cast<int>(ExitCode::kInterrupted) ||
                                            code == static_cast<int>(ExitCode::kTerminated));
  if (as_asked) return;  // another one may still be saving
  if (stage_ != Stage::kRunning || !any_runs()) return;
  std::fprintf(stderr, "sdtune: launch: rank %lld %s; the other ranks are stopped\n", static_cast<long long>(end.rank),
               describe(end).c_str());
  stage_ = Stage::kNoticing;
  deadline_ = Clock::now() + kNoticeTime;
}

void RankGroup::stop_late_ones() {
  if (stage_ == Stage::kRunning || stage_ == Stage::kKilled || Clock::now() < deadline_) return;
  if (stage_ == Stage::kNoticing) {
    send_all(SIGTERM);
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
