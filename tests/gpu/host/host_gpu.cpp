#include "tests/gpu/host/host_gpu.h"

#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/gpu/host/cuda_runtime.h"
#include "tests/gpu/host/fiber.h"

namespace host_gpu {

Position position = {};
int launches[2] = {};

namespace {

constexpr int kWarp = 32;
constexpr unsigned kMostThreads = 1024;

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Thread {
  Fiber fiber;
  State state = State::kReady;
  std::source_location place;
  int exchanges = 0;  // so far in this block: neighbouring ones use different slots
};

// One block at a time, whoever launches.
struct Block {
  std::vector<Thread> threads;
  std::vector<Slot> slots;  // two a lane
  unsigned current = 0;
  void (*call)(const void*) = nullptr;
  const void* argument = nullptr;
};
Block block;
std::mutex running;

std::string name_of(const std::source_location& place) {
  return std::string(place.function_name()) + ":" + std::to_string(place.line());
}

bool is_same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

void pause(State state, const std::source_location& place) {
  Thread& thread = block.threads[block.current];
  thread.state = state;
  thread.place = place;
  thread.fiber.leave();
}

// The thread-local memory of the module that this is linked into: what kernels declare as __shared__.
struct SharedMemory {
  void* begin = nullptr;
  std::size_t bytes = 0;
};

int find_shared_memory(dl_phdr_info* module, std::size_t, void* found) {
  const auto here = reinterpret_cast<std::uintptr_t>(&find_shared_memory);
  bool is_ours = false;
  std::size_t bytes = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& header = module->dlpi_phdr[i];
    const std::uintptr_t begin = module->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && here >= begin && here < begin + header.p_memsz) is_ours = true;
    if (header.p_type == PT_TLS) bytes = header.p_memsz;
  }
  if (!is_ours) return 0;
  *static_cast<SharedMemory*>(found) = {module->dlpi_tls_data, bytes};
  return 1;
}

void poison_shared_memory() {
  SharedMemory shared;
  dl_iterate_phdr(find_shared_memory, &shared);
  if (shared.begin != nullptr) std::memset(shared.begin, 0xFF, shared.bytes);
}

void run_thread() {
  block.call(block.argument);
  block.threads[block.current].state = State::kDone;
}

// Threads [begin, end) that all wait at one barrier go on. False where one does not wait there, or waits elsewhere.
bool release(unsigned begin, unsigned end, State barrier) {
  for (unsigned i = begin; i < end; ++i) {
    if (block.threads[i].state != barrier || !is_same(block.threads[i].place, block.threads[begin].place)) return false;
  }
  for (unsigned i = begin; i < end; ++i) block.threads[i].state = State::kReady;
  return true;
}

[[noreturn]] void fail_stuck() {
  std::string places;
  std::string last;
  for (unsigned i = 0; i < block.threads.size(); ++i) {
    const Thread& thread = block.threads[i];
    const std::string name = thread.state == State::kDone ? "the end" : name_of(thread.place);
    if (name != last) places += "\n  thread " + std::to_string(i) + " at " + name;
    last = name;
  }
  throw std::logic_error("host GPU: threads wait at different barriers:" + places);
}

// Runs a warp's threads until all wait at the block's barrier, are done, or can go no further.
void run_warp(unsigned begin, unsigned end, bool descending) {
  do {
    for (unsigned k = 0; k < end - begin; ++k) {
      const unsigned i = descending ? end - 1 - k : begin + k;
      if (block.threads[i].state != State::kReady) continue;
      block.current = i;
      position.thread.x = i;
      block.threads[i].fiber.enter();
    }
  } while (release(begin, end, State::kAtWarpBarrier));
}

void run_block(bool descending) {
  const auto count = static_cast<unsigned>(block.threads.size());
  for (Thread& thread : block.threads) {
    thread.fiber.begin(run_thread);
    thread.state = State::kReady;
    thread.exchanges = 0;
  }
  do {
    for (unsigned k = 0; k < count; k += kWarp) {
      const unsigned begin = descending ? count - kWarp - k : k;
      run_warp(begin, begin + kWarp, descending);
    }
  } while (release(0, count, State::kAtBlockBarrier));
  const auto is_done = [](const Thread& thread) { return thread.state == State::kDone; };
  if (!std::all_of(block.threads.begin(), block.threads.end(), is_done)) fail_stuck();
}

}  // namespace

void wait_for_block(const std::source_location& place) {
  pause(State::kAtBlockBarrier, place);
}

Slot exchange(const Slot& mine, int lane, const std::source_location& place) {
  Thread& thread = block.threads[block.current];
  const unsigned warp = block.current / kWarp * kWarp;
  Slot* slots = block.slots.data() + (thread.exchanges++ % 2) * block.threads.size();
  slots[block.current] = mine;
  pause(State::kAtWarpBarrier, place);
  return slots[warp + static_cast<unsigned>(lane)];
}

bool run_grid(const Index& grid, unsigned threads, void (*call)(const void*), const void* argument) {
  const bool is_possible = threads > 0 && threads <= kMostThreads && threads % kWarp == 0 && grid.x > 0 && grid.y > 0 &&
                           grid.z > 0 && grid.x < 1u << 31 && grid.y < 65536 && grid.z < 65536;
  if (!is_possible) return false;
  const std::lock_guard lock(running);
  int device = 0;
  cudaGetDevice(&device);
  ++launches[device];
  const char* order = std::getenv("SDTUNE_HOST_GPU_ORDER");
  const bool descending = order != nullptr && std::strcmp(order, "descending") == 0;
  block.threads.resize(threads);
  block.slots.assign(2 * threads, Slot{~std::uint64_t{0}});
  block.call = call;
  block.argument = argument;
  position.grid = grid;
  const std::uint64_t count = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t index = descending ? count - 1 - k : k;
    position.block = {static_cast<unsigned>(index % grid.x), static_cast<unsigned>(index / grid.x % grid.y),
                      static_cast<unsigned>(index / grid.x / grid.y)};
    poison_shared_memory();
    run_block(descending);
  }
  return true;
}

}  // namespace host_gpu

namespace {
int current_device = 0;
}  // namespace

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device == host_gpu::kFullDevice) return cudaErrorMemoryAllocation;
  if (device == host_gpu::kFailedDevice) return cudaErrorLaunchFailure;
  if (device < 0 || device > 1) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t status) {
  if (status == cudaErrorMemoryAllocation) return "out of memory";
  if (status == cudaErrorLaunchFailure) return "unspecified launch failure";
  return status == cudaErrorInvalidDevice ? "invalid device ordinal" : "invalid argument";
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
