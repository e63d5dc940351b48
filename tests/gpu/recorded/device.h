// The GPU's memory, streams and events as LibTorch sees them: addresses that nothing lies behind.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace sdtune::record {

// So many launches a stream takes before the host waits for it.
inline constexpr std::int64_t kQueuedLaunches = 1024;

c10::Allocator& device_memory();
bool is_pinned(const void* memory);

// Puts guard, hooks and allocators in the place of CUDA's. Throws where LibTorch has asked CUDA's own already.
void install_device();

}  // namespace sdtune::record
