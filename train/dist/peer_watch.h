// What a rank knows of the others while it waits for them.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "train/dist/rank_failure.h"

namespace sdtune::train {

// No call of it depends on an answer of the store: a store that does not answer is itself a lost rank.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;

  // Counted, so that a rank that does not answer shows as behind the others.
  virtual void note_progress() = 0;

  // Waits until every rank has called this as often as this one, however long that takes: gives up (false) only when a
  // rank that is still missing has ended or has shown no life for `silence`, or when another rank has found one lost.
  virtual bool wait_for_all(std::chrono::milliseconds silence) = 0;

  // While a collective is waited for: the ranks that have ended or have shown no life for `silence`, or that another
  // rank has found lost, as "rank 2 (host)", separated by commas; empty while all live. Returns at once.
  virtual std::string gone(std::chrono::milliseconds silence) = 0;

  // Who is lost, after a collective failed, in the words of gone(). Takes a few seconds unless another rank has already
  // found out.
  virtual std::string find_lost() = 0;

  // Tells the others why this rank ends, and returns once they can read it, or after a few seconds.
  virtual void say_failure(const Error&) {}
  // What another rank said in say_failure.
  virtual std::optional<RankFailure> failure() { return std::nullopt; }
};

}  // namespace sdtune::train
