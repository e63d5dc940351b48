#include "train/run/memory_use.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "model/core/tensor_memory.h"
#include "model/machine/control_groups.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kKibibyte = 1024;
constexpr std::int64_t kUnknown = -1;

// "Name:   123 kB" of a file in /proc, in bytes.
std::int64_t proc_bytes(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  std::int64_t value = 0;
  while (file >> word) {
    if (word == name + ":" && file >> value) return value * kKibibyte;
  }
  return kUnknown;
}

}  // namespace

std::int64_t max_memory_bytes(torch::Device device) {
  if (device.is_cuda()) {
    const c10::CachingDeviceAllocator::DeviceStats stats =
        c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(device.index());
    return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
  }
  // Not getrusage's: that counts the process that started this one until it became another program.
  return std::max<std::int64_t>(0, proc_bytes("/proc/self/status", "VmHWM"));
}

std::int64_t resident_bytes() {
  return std::max<std::int64_t>(0, proc_bytes("/proc/self/status", "VmRSS"));
}

void give_back_memory() {
  model::release_tensor_memory();
  ::malloc_trim(0);
}

std::int64_t free_memory_bytes() {
  const std::int64_t left =
      model::memory_left(model::SystemFiles("/")).value_or(std::numeric_limits<std::int64_t>::max());
  return std::min(std::max<std::int64_t>(0, proc_bytes("/proc/meminfo", "MemAvailable")), left);
}

PeakMeter::PeakMeter() {
  std::ofstream("/proc/self/clear_refs") << "5";  // the kernel's word for: begin VmHWM anew
}

std::int64_t PeakMeter::peak_bytes() const {
  return std::max<std::int64_t>(0, proc_bytes("/proc/self/status", "VmHWM"));
}

}  // namespace sdtune::train
