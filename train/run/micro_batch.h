// `micro_batch: auto`: as many photos at once as the memory holds. The batch stays what it was, so the numbers of the
// run do not depend on it beyond rounding.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run.h"

namespace sdtune::train {

// The largest divisor of `batch` below `micro`; 0 for 1.
std::int64_t next_smaller_micro_batch(std::int64_t batch, std::int64_t micro);

// The largest divisor m of `batch` with first + (m - 1) x each <= limit, at least 1. Bytes: `first` is what one photo
// at once needs in all, `each` what every further one adds.
std::int64_t largest_micro_batch(std::int64_t batch, std::int64_t first, std::int64_t each, std::int64_t limit);

// Sets run.micro_batch by real steps whose gradients are discarded; all ranks come to the same. On a GPU the batch is
// halved until one goes through; a CPU, which does not refuse memory but kills, is asked with one and two photos and
// the rest is computed from these, against 9/10 of what is free, shared by the ranks. Says in run.notes what it found.
// Throws OutOfMemoryError with what would need less when even one photo does not fit.
void fit_micro_batch(Run& run);

// Whether the threads of a CPU each compute samples of a micro-batch of their own (model/core/chunk_threads.h), which a
// small network gains from. A large one keeps all cores busy with each operator, and each chunk would read its weights
// and hold gradients of its own. Neither with recomputed activations, which are asked for to save memory, nor beside
// other ranks, which wait for each gradient as it comes.
bool computes_in_chunks(const Run& run);

// What needs less memory than this configuration, best first: "gradient_checkpointing, ...".
std::string memory_hint(const TrainConfig& config);

}  // namespace sdtune::train
