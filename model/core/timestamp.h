// When the work that was asked for so far is over: on a CPU now, on a GPU a place in the current stream, which the
// device passes later. Taking and comparing them never waits.
#pragma once

#include <c10/core/Event.h>
#include <torch/types.h>

#include <chrono>
#include <optional>

namespace sdtune::model {

class Timestamp {
 public:
  explicit Timestamp(torch::Device device);
  // Seconds from `earlier`, of the same device, to this; unset while a GPU has not come that far.
  std::optional<double> seconds_after(const Timestamp& earlier) const;

 private:
  std::chrono::steady_clock::time_point host_;
  std::optional<c10::Event> passed_;  // unset where the host computes, or nothing does
};

}  // namespace sdtune::model
