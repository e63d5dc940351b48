#include "train/dist/overlap_record.h"

namespace sdtune::train {

void OverlapRecord::clear() {
  first_.reset();
  last_.reset();
  sent_.clear();
}

void OverlapRecord::note_gradient(Clock::time_point now) {
  if (!first_) first_ = now;
  last_ = now;
}

void OverlapRecord::note_sent(std::size_t bytes, Clock::time_point now) {
  sent_.push_back({now, bytes});
}

std::optional<double> OverlapRecord::share() const {
  std::size_t all = 0, early = 0;
  for (const Sent& sent : sent_) {
    all += sent.bytes;
    if (first_ && 5 * (sent.when - *first_) <= 4 * (*last_ - *first_)) early += sent.bytes;
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(early) / static_cast<double>(all);
}

}  // namespace sdtune::train
