// A function with a stack of its own that can be left in the middle and entered again, on x86-64.
#pragma once

#include <cstddef>

namespace host_gpu {

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber& operator=(Fiber&&) = delete;

  // The next enter() calls `work`; where it stood before is forgotten.
  void begin(void (*work)());
  // From outside: goes on until the fiber leaves or its work is done.
  void enter();
  // From inside.
  void leave();

 private:
  static void start();

  void* stack_ = nullptr;
  void* top_ = nullptr;  // the saved stack pointer while the fiber stands still
  void (*work_)() = nullptr;
  std::size_t top_offset_ = 0;
  void* fake_stack_ = nullptr;  // of the address sanitizer
};

}  // namespace host_gpu
