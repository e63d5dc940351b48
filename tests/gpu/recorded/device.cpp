#include "tests/gpu/recorded/device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "tests/gpu/recorded/current_device.h"
#include "tests/gpu/recorded/record.h"

namespace sdtune::record {

namespace {

constexpr std::size_t kAddresses = std::size_t{1} << 44;
constexpr std::size_t kPage = 512;

// SDTUNE_RECORDED_MEMORY: bytes after which memory is refused, as a card that is full does; 0 for none.
std::int64_t most_bytes() {
  static const std::int64_t most = [] {
    const char* given = std::getenv("SDTUNE_RECORDED_MEMORY");
    return given == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(std::atoll(given));
  }();
  return most;
}

// Addresses that may not be touched: who reads a tensor of the GPU on the host ends with a signal. Never given out
// twice, as a run ends before they are used up. What is given out and comes back is counted in the blocks in which
// LibTorch's allocator gives it out; what that keeps in reserve, and gaps between blocks, are not there.
class DeviceMemory final : public c10::DeviceAllocator {
 public:
  DeviceMemory() {
    void* begin = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(begin != MAP_FAILED, "recorded GPU: no addresses");
    begin_ = next_ = static_cast<char*>(begin);
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(current_device()));
    if (bytes == 0) return {nullptr, device};
    const std::lock_guard lock(mutex_);
    char* at = next_;
    const std::size_t length = (bytes + kPage - 1) / kPage * kPage;
    const std::int64_t live = Record::instance().live_bytes() + static_cast<std::int64_t>(length);
    TORCH_CHECK_WITH(OutOfMemoryError, most_bytes() == 0 || live <= most_bytes(), "recorded GPU: out of memory");
    next_ += length;
    TORCH_CHECK(next_ < begin_ + kAddresses, "recorded GPU: its addresses are used up");
    lengths_[at] = length;
    Record::instance().add_memory(static_cast<std::int64_t>(length));
    return {at, at, release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void*, const void*, std::size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { Record::instance().add_operator("allocator::empty_cache", 0); }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto& all = stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    all.current = Record::instance().live_bytes();
    all.peak = Record::instance().peak_bytes();
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

 private:
  static void release(void* memory);

  std::mutex mutex_;
  std::unordered_map<const void*, std::size_t> lengths_;
  char* begin_;
  char* next_;
};

DeviceMemory& memory() {
  static DeviceMemory& allocator = *new DeviceMemory;  // tensors may outlive static objects
  return allocator;
}

void DeviceMemory::release(void* at) {
  DeviceMemory& all = memory();
  const std::lock_guard lock(all.mutex_);
  const auto found = all.lengths_.find(at);
  if (found == all.lengths_.end()) return;
  Record::instance().add_memory(-static_cast<std::int64_t>(found->second));
  all.lengths_.erase(found);
}

std::mutex pinned_mutex;
std::map<const char*, std::size_t> pinned;  // begin and length

class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* memory = static_cast<char*>(std::calloc(bytes + 1, 1));
    const std::lock_guard lock(pinned_mutex);
    pinned[memory] = bytes + 1;
    return {memory, memory, release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void release(void* memory) {
    {
      const std::lock_guard lock(pinned_mutex);
      pinned.erase(static_cast<const char*>(memory));
    }
    std::free(memory);
  }
};

// An event is over once the host is as far ahead as a stream's queue is long.
struct Event {
  std::int64_t position = 0;
  bool is_over() const { return Record::instance().position() >= position + kQueuedLaunches; }
};

thread_local int current = 0;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {c10::kCUDA, static_cast<c10::DeviceIndex>(current)}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(getDevice()); }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->position = Record::instance().position();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override { return event == nullptr || static_cast<Event*>(event)->is_over(); }
  void synchronizeEvent(void* event) const override {
    if (queryEvent(event)) return;
    Record::instance().add_wait("event");
    static_cast<Event*>(event)->position = -kQueuedLaunches;
  }
  bool queryStream(const c10::Stream&) const override { return false; }
  void synchronizeStream(const c10::Stream&) const override { Record::instance().add_wait("stream"); }
  void synchronizeDevice(const c10::DeviceIndex) const override { Record::instance().add_wait("device"); }
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { return 1; }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasCuDNN() const override { return true; }
  bool hasCuBLASLt() const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  long versionCuDNN() const override { return 91900; }
  long versionRuntimeCuDNN() const override { return 91900; }
  double batchnormMinEpsilonCuDNN() const override { return 1e-5; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return static_cast<at::DeviceIndex>(device_count()); }
  int getNumGPUs() const override { return device_count(); }
  at::DeviceIndex current_device() const override { return getCurrentDevice(); }
  at::DeviceIndex getCurrentDevice() const override { return static_cast<at::DeviceIndex>(current); }
  void setCurrentDevice(at::DeviceIndex index) const override { set_current_device(index); }
  at::DeviceIndex exchangeDevice(at::DeviceIndex index) const override {
    const at::DeviceIndex before = getCurrentDevice();
    set_current_device(index);
    return before;
  }
  at::DeviceIndex maybeExchangeDevice(at::DeviceIndex index) const override {
    return index < 0 ? getCurrentDevice() : exchangeDevice(index);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedMemory memory;
    return &memory;
  }
  at::Allocator* getCUDADeviceAllocator() const override { return &device_memory(); }
  bool isPinnedPtr(const void* memory) const override { return is_pinned(memory); }
  at::Device getDeviceFromPtr(void*) const override { return {at::kCUDA, getCurrentDevice()}; }
  void deviceSynchronize(at::DeviceIndex) const override { Record::instance().add_wait("device"); }
};

}  // namespace

c10::Allocator& device_memory() {
  return memory();
}

int device_count() {
  static const int count = [] {
    const char* listed = std::getenv("SDTUNE_STUB_GPUS");
    const std::string_view names = listed == nullptr ? "" : listed;
    return 1 + static_cast<int>(std::count(names.begin(), names.end(), ';'));
  }();
  return count;
}

int current_device() {
  return current;
}

void set_current_device(int index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "recorded GPU: there is no cuda:", index);
  current = index;
}

bool is_pinned(const void* memory) {
  const std::lock_guard lock(pinned_mutex);
  auto next = pinned.upper_bound(static_cast<const char*>(memory));
  if (next == pinned.begin()) return false;
  --next;
  return memory < next->first + next->second;
}

void install_device() {
  at::CUDAHooksRegistry()->Register(
      "CUDAHooks", [](at::CUDAHooksArgs args) { return std::make_unique<Hooks>(args); }, c10::REGISTRY_PREFERRED);
  TORCH_CHECK(dynamic_cast<const Hooks*>(&at::detail::getCUDAHooks()) != nullptr,
              "recorded GPU: LibTorch asked CUDA's own hooks before this library was loaded");
  static Guard guard;
  c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::kCUDA)].store(&guard);
  c10::SetAllocator(c10::kCUDA, &memory(), 255);
}

}  // namespace sdtune::record
