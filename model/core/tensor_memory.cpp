#include "model/core/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

namespace sdtune::model {
namespace {

constexpr std::size_t kAlignment = 64;  // LibTorch's own, for vectors and cache lines
// Sizes between two powers of two are rounded up to one of so many, so that a tensor wastes at most an eighth.
constexpr std::size_t kStepsOfTwo = 8;
constexpr std::size_t kClasses = 64 * kStepsOfTwo;
constexpr std::size_t kNoClass = kClasses;  // of a block that was made without a scope, and is not kept
// A block of so many bytes is pages of its own, which go back to the kernel with it. In malloc's heap, whose share of
// large blocks grows up to 32 MiB, those that are given back leave holes: training SD 1.5 took 0.8 GiB more.
constexpr std::size_t kOwnPages = std::size_t{1} << 20;

// Before the bytes of each block. Blocks that wait are in two lists: of their class, and of all by age.
struct alignas(kAlignment) Block {
  std::size_t bytes = 0;  // of the class, with this header
  std::size_t size_class = 0;
  Block* next = nullptr;  // of the class
  Block* previous = nullptr;
  Block* younger = nullptr;  // of all
  Block* older = nullptr;
  volatile std::uintptr_t seal = 0;  // tells a block from memory of LibTorch's allocator: oneDNN's packed weights that
                                     // were made before the first scope come to free_data as well

  void* data() { return this + 1; }
  bool has_own_pages() const { return size_class != kNoClass && bytes >= kOwnPages; }
  std::uintptr_t own_seal() const { return reinterpret_cast<std::uintptr_t>(this) ^ 0x5d7a1e5ea1b10c5UL; }
  static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
};
static_assert(sizeof(Block) == kAlignment);

struct SizeClass {
  std::size_t index, bytes;
};

SizeClass class_of(std::size_t bytes) {
  const std::size_t wanted = std::max<std::size_t>(bytes, kAlignment * kStepsOfTwo);
  const auto power = static_cast<std::size_t>(std::bit_width(wanted - 1)) - 1;  // 2^power < wanted <= 2^(power + 1)
  const std::size_t step = (std::size_t{1} << power) / kStepsOfTwo;
  const std::size_t rounded = (wanted + step - 1) / step * step;
  return {power * kStepsOfTwo + rounded / step - kStepsOfTwo - 1, rounded};
}

// What waits where no scope lives: of an autoencoder's passes at 512 px enough that the next one is as fast.
constexpr std::size_t kMostAtRest = std::size_t{1} << 30;

thread_local bool is_reusing = false;
std::atomic<int> scopes = 0;  // of all threads, without those within another

// Null where there is none.
void* fresh_memory(const SizeClass& wanted) {
  if (wanted.index != kNoClass && wanted.bytes >= kOwnPages) {
    void* pages = mmap(nullptr, wanted.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, wanted.bytes) == 0 ? memory : nullptr;
}

class ReusingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &ReusingAllocator::free_data, c10::Device(c10::kCPU)};
    void* data = (is_reusing ? take(bytes) : make({kNoClass, bytes + sizeof(Block)}, bytes))->data();
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &ReusingAllocator::free_data, c10::Device(c10::kCPU)};
  }
  // oneDNN takes its working memory this way.
  c10::DeleterFnPtr raw_deleter() const override { return &ReusingAllocator::free_data; }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }

  void release() {
    const std::lock_guard lock(mutex_);
    while (oldest_ != nullptr) drop(oldest_);
    memory_.peak = memory_.used;
  }
  void trim(std::size_t most) {
    const std::lock_guard lock(mutex_);
    while (memory_.kept > most) drop(oldest_);
  }
  void rest() {
    const std::lock_guard lock(mutex_);
    trim(kMostAtRest);
    memory_.peak = memory_.used + memory_.kept;  // what waits is there for the next scope
  }
  TensorMemory memory() {
    const std::lock_guard lock(mutex_);
    return memory_;
  }

 private:
  static void free_data(void* data);

  Block* take(std::size_t bytes) {
    const SizeClass wanted = class_of(bytes + sizeof(Block));
    const std::lock_guard lock(mutex_);
    Block* block = newest_of_.at(wanted.index);
    if (block != nullptr) {
      unlink(block);
    } else {
      make_room(wanted.bytes);
      block = make(wanted, bytes);
    }
    memory_.used += block->bytes;
    memory_.peak = std::max(memory_.peak, memory_.used);
    return block;
  }

  void put(Block* block) {
    if (block->size_class == kNoClass) return give_back(block);
    const std::lock_guard lock(mutex_);
    memory_.used -= block->bytes;
    if (!is_reusing) return give_back(block);  // a model that is no longer needed
    link(block);
    if (memory_.used + memory_.kept > memory_.peak + kept_memory_limit(memory_.peak)) drop(oldest_);
  }

  // Gives back the blocks that wait longest, so that `bytes` more fit below the limit.
  void make_room(std::size_t bytes) {
    const std::size_t peak = std::max(memory_.peak, memory_.used + bytes);
    const std::size_t most = peak + kept_memory_limit(peak);
    while (oldest_ != nullptr && memory_.used + memory_.kept + bytes > most) drop(oldest_);
  }

  // Memory of that size; of a tensor of `bytes`, for the error.
  Block* make(const SizeClass& wanted, std::size_t bytes) {
    void* memory = fresh_memory(wanted);
    if (memory == nullptr) {
      release();
      memory = fresh_memory(wanted);
    }
    if (memory == nullptr) {
      c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
      TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
    }
    auto* block = new (memory) Block;
    block->bytes = wanted.bytes;
    block->size_class = wanted.index;
    block->seal = block->own_seal();
    return block;
  }

  void link(Block* block) {
    Block*& first = newest_of_.at(block->size_class);
    block->next = first;
    block->previous = nullptr;
    if (first != nullptr) first->previous = block;
    first = block;
    block->older = youngest_;
    block->younger = nullptr;
    (youngest_ != nullptr ? youngest_->younger : oldest_) = block;
    youngest_ = block;
    memory_.kept += block->bytes;
  }

  void unlink(Block* block) {
    (block->previous != nullptr ? block->previous->next : newest_of_.at(block->size_class)) = block->next;
    if (block->next != nullptr) block->next->previous = block->previous;
    (block->older != nullptr ? block->older->younger : oldest_) = block->younger;
    (block->younger != nullptr ? block->younger->older : youngest_) = block->older;
    memory_.kept -= block->bytes;
  }

  void drop(Block* block) {
    unlink(block);
    give_back(block);
  }

  static void give_back(Block* block) {
    block->seal = 0;
    if (block->has_own_pages()) {
      munmap(block, block->bytes);
    } else {
      std::free(block);
    }
  }

  std::recursive_mutex mutex_;  // release() where memory ran out, trim() at rest
  std::array<Block*, kClasses> newest_of_{};
  Block* oldest_ = nullptr;
  Block* youngest_ = nullptr;
  TensorMemory memory_;
};

bool is_switched_off() {
#if defined(__SANITIZE_ADDRESS__)
  return true;  // it could not see that a tensor is read after its end
#else
  const char* value = std::getenv("SDTUNE_TENSOR_MEMORY");
  return value != nullptr && std::string(value) == "library";
#endif
}

// Null where it is switched off. Never destroyed: tensors may outlive static objects.
ReusingAllocator* allocator() {
  static ReusingAllocator* const made = []() -> ReusingAllocator* {
    if (is_switched_off()) return nullptr;
    auto* reusing = new ReusingAllocator;
    c10::SetCPUAllocator(reusing, /*priority=*/1);
    return reusing;
  }();
  return made;
}

void ReusingAllocator::free_data(void* data) {
  if (data == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(data);
  Block* const block = Block::of(data);
  if (block->seal != block->own_seal()) return std::free(data);
  allocator()->put(block);
}

}  // namespace

TensorMemoryScope::TensorMemoryScope() : outer_(is_reusing) {
  is_reusing = allocator() != nullptr;
  if (is_reusing && !outer_) ++scopes;
}

TensorMemoryScope::~TensorMemoryScope() {
  if (is_reusing && !outer_ && --scopes == 0) allocator()->rest();
  is_reusing = outer_;
}

bool TensorMemoryScope::is_active() {
  return is_reusing;
}

TensorMemory tensor_memory() {
  return allocator() == nullptr ? TensorMemory{} : allocator()->memory();
}

std::size_t kept_memory_limit(std::size_t peak) {
  constexpr std::size_t kLeast = std::size_t{256} << 20, kMost = std::size_t{512} << 20;
  return std::clamp(peak / 8, kLeast, kMost);
}

void trim_tensor_memory(std::size_t most) {
  if (allocator() != nullptr) allocator()->trim(most);
}

void release_tensor_memory() {
  if (allocator() != nullptr) allocator()->release();
}

}  // namespace sdtune::model
