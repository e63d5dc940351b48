// How much of a step's communication runs beside backward.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace sdtune::train {

class OverlapRecord {
 public:
  using Clock = std::chrono::steady_clock;

  // Before a backward.
  void clear();
  // A gradient has come: from the first to the last of them is what counts as backward.
  void note_gradient(Clock::time_point now = Clock::now());
  void note_sent(std::size_t bytes, Clock::time_point now = Clock::now());
  // Of the bytes sent, the share that was sent before the last fifth of backward; unset where nothing was sent.
  std::optional<double> share() const;

 private:
  struct Sent {
    Clock::time_point when;
    std::size_t bytes;
  };
  std::optional<Clock::time_point> first_, last_;
  std::vector<Sent> sent_;
};

}  // namespace sdtune::train
