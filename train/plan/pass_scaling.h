// What a pass costs at a size at which it was not run, from passes at small sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "train/plan/pass_trace.h"

namespace sdtune::train {

// Of the latents that go through a network at once.
struct PassShape {
  std::int64_t batch = 1;
  std::int64_t height = 0, width = 0;  // latent cells

  std::int64_t cells() const { return height * width; }
};

using TracePass = std::function<PassCost(const PassShape&)>;

// What is done with a pass that is quick at its own size.
enum class QuickPass {
  kSizes,     // nothing is computed: it is of another device
  kComputed,  // it is computed, so that what this CPU's kernels take for themselves is seen
  kWatched,   // and the process watched meanwhile, for the gaps of the allocator
};

class ScaledPass {
 public:
  // Sides are multiples of `step` (latent cells). Traces nothing yet.
  ScaledPass(std::int64_t step, QuickPass quick, TracePass trace);

  // Runs the pass at `shape` itself where that is quick, else its sizes alone (sizes_only.h) at three small ones, once
  // for all shapes: of each piece,
  // a part that is always there, one that grows with the samples and one that grows with samples x cells are
  // separated. Operations of attention between pixels go by the square of their number; our attention keeps no scores,
  // so its memory does not.
  PassCost at(const PassShape& shape);

 private:
  PassCost quick_at(const PassShape& shape) const;
  PassCost sizes_at(const PassShape& shape) const;
  void trace_trials(std::size_t count);  // the first ones

  QuickPass quick_;
  std::array<PassShape, 3> trials_;  // one sample small and large, two samples small
  TracePass trace_;
  std::vector<PassCost> costs_;  // of the trials made so far
};

}  // namespace sdtune::train
