#include "tests/gpu/host/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

// Saves the registers that a call must keep on the stack, its top in *save, and goes on where `to` was saved.
extern "C" void sdtune_switch_stack(void** save, void* to);
asm(R"(
.text
.globl sdtune_switch_stack
.type sdtune_switch_stack, @function
sdtune_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sdtune_switch_stack, .-sdtune_switch_stack
)");

// The address sanitizer is told of every change of stacks; without it these do nothing.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
namespace {
void before_switch(void** fake_stack, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}
void after_switch(void* fake_stack, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
}
void forget_poison(void* memory, std::size_t size) {
  __asan_unpoison_memory_region(memory, size);
}
}  // namespace
#else
namespace {
void before_switch(void**, const void*, std::size_t) {}
void after_switch(void*, const void**, std::size_t*) {}
void forget_poison(void*, std::size_t) {}
}  // namespace
#endif

namespace host_gpu {

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr int kSavedRegisters = 6;

// Where enter() was called: one fiber runs at a time.
void* outside = nullptr;
const void* outside_bottom = nullptr;
std::size_t outside_size = 0;
Fiber* inside = nullptr;

}  // namespace

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

Fiber::Fiber(Fiber&& other) noexcept
    : stack_(std::exchange(other.stack_, nullptr)),
      top_(other.top_),
      work_(other.work_),
      top_offset_(other.top_offset_) {}

void Fiber::begin(void (*work)()) {
  if (stack_ == nullptr) {
    stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack_ == MAP_FAILED) throw std::bad_alloc();
    // Tops at equal places of their pages would share a few lines of the cache.
    static std::size_t made = 0;
    top_offset_ = made++ % 64 * 320;
  } else if (top_ != nullptr) {
    forget_poison(stack_, kStackBytes);  // it was left in the middle
  }
  work_ = work;
  // What the switch pops: registers, and start() as the address to return to. A function begins 8 bytes off 16.
  auto* slot = static_cast<std::uint64_t*>(stack_) + (kStackBytes - top_offset_) / sizeof(std::uint64_t) - 2;
  *slot = reinterpret_cast<std::uint64_t>(&Fiber::start);
  top_ = slot - kSavedRegisters;
  fake_stack_ = nullptr;
}

void Fiber::enter() {
  inside = this;
  void* fake_stack = nullptr;
  before_switch(&fake_stack, stack_, kStackBytes);
  sdtune_switch_stack(&outside, top_);
  after_switch(fake_stack, nullptr, nullptr);
}

void Fiber::leave() {
  before_switch(&fake_stack_, outside_bottom, outside_size);
  sdtune_switch_stack(&top_, outside);
  after_switch(fake_stack_, &outside_bottom, &outside_size);
}

void Fiber::start() {
  after_switch(nullptr, &outside_bottom, &outside_size);
  Fiber* self = inside;
  self->work_();
  self->top_ = nullptr;  // done: nothing is left on the stack
  before_switch(nullptr, outside_bottom, outside_size);
  void* nowhere = nullptr;
  sdtune_switch_stack(&nowhere, outside);
  std::abort();
}

}  // namespace host_gpu
