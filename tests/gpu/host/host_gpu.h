// A GPU on the CPU: runs a grid block by block, each thread of a block as a fiber with a stack of its own.
#pragma once

#include <cstdint>
#include <source_location>

namespace host_gpu {

// Where the running fiber is.
struct Index {
  unsigned x, y, z;
};
struct Position {
  Index thread, block, grid;
};
extern Position position;

// Runs call(argument) for each thread of each block: in rising order of both, or where the environment variable
// SDTUNE_HOST_GPU_ORDER says "descending" in falling order. False for a grid or block out of CUDA's limits. Throws
// std::logic_error where threads wait at different barriers, or one waits for a thread that has ended.
bool run_grid(const Index& grid, unsigned threads, void (*call)(const void*), const void* argument);

// The next two are for running fibers. The block's barrier:
void wait_for_block(const std::source_location& place);
// Shows `mine` to the warp and gives what `lane` shows, once all lanes are here.
struct Slot {
  std::uint64_t bits;
};
Slot exchange(const Slot& mine, int lane, const std::source_location& place);

// Devices that cannot be made current: one has no memory left, on the other an earlier kernel has failed.
inline constexpr int kFullDevice = 2, kFailedDevice = 3;

// How many launches ran with each of the devices 0 and 1 current.
extern int launches[2];

}  // namespace host_gpu
