// A batch in chunks, each computed by a thread of its own. In a small network most operators are too short to be shared
// between cores: a whole pass over some of the samples waits for no other thread.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace sdtune::model {

struct ChunkRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one past the last sample
  std::int64_t size() const { return end - begin; }
};

// How many chunks a batch of `samples` on `device` is computed in: one a thread of the CPU, or 1 where a thread would
// be left without samples (of large images it helps its neighbours better), on a GPU, and within run_chunks.
std::int64_t chunk_count(std::int64_t samples, torch::Device device);

// The samples of chunk `index` of `chunks`; sizes differ by one at most.
ChunkRange chunk_range(std::int64_t samples, std::int64_t chunks, std::int64_t index);

// Calls compute(0) ... compute(chunks - 1), with chunks of chunk_count, at the same time, each on a thread of its own
// with the caller's gradient mode, profiler and tensor memory; operators within use no other thread. Returns when all
// have returned, and throws what the first of those that failed threw. A single chunk is computed by the caller's
// thread.
void run_chunks(std::int64_t chunks, const std::function<void(std::int64_t)>& compute);

// The number of the chunk that this thread computes; 0 outside of run_chunks.
std::int64_t current_chunk();

}  // namespace sdtune::model
