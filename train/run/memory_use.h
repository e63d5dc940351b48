// How much memory a run has needed, and how much there is.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

// The highest so far, in bytes: allocated on a GPU, resident of the process on a CPU.
std::int64_t max_memory_bytes(torch::Device device);

// Of this process, now.
std::int64_t resident_bytes();

// What was freed goes back to the system: the allocator keeps the memory of generation and encoding for blocks of other
// sizes than training asks for.
void give_back_memory();

// What processes may still take, caches that the system gives back among it; the container's limit counts.
std::int64_t free_memory_bytes();

// The highest resident size since it was made. max_memory_bytes of a CPU forgets what was before it too.
class PeakMeter {
 public:
  PeakMeter();
  std::int64_t peak_bytes() const;
};

}  // namespace sdtune::train
