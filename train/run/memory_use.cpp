#include "train/run/memory_use.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>

namespace sdtune::train {

std::int64_t max_memory_bytes(torch::Device device) {
  if (device.is_cuda()) {
    const c10::CachingDeviceAllocator::DeviceStats stats =
        c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(device.index());
    return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
  }
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace sdtune::train
