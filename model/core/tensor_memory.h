// Memory of tensors on a CPU that is used again. A network's passes ask for the same sizes each time; without this
// large ones come from the kernel and go back to it, which clears each page anew: a fifth of the time of SD 1.5's
// autoencoder at 512 px on an EPYC of family 26.
#pragma once

#include <cstddef>

namespace sdtune::model {

// While one lives, tensors that this thread makes on the CPU take blocks that freed ones left, and those that it frees
// leave theirs; those of other threads and of a notebook's own calls come from the system and go back to it, a model
// that is let go between two calls too. What is kept never makes the process larger than its tensors were within the
// scopes by more than kept_memory_limit, and once no scope lives it is 1 GiB at most. Scopes may nest. The environment
// variable SDTUNE_TENSOR_MEMORY=library leaves everything to LibTorch's allocator.
class TensorMemoryScope {
 public:
  TensorMemoryScope();
  ~TensorMemoryScope();
  TensorMemoryScope(const TensorMemoryScope&) = delete;
  TensorMemoryScope& operator=(const TensorMemoryScope&) = delete;

  // Whether one lives on this thread.
  static bool is_active();

 private:
  bool outer_;
};

struct TensorMemory {
  std::size_t used = 0;  // bytes of tensors that live
  std::size_t peak = 0;  // the most of them since a scope began, with what waited then
  std::size_t kept = 0;  // bytes of blocks that wait for a tensor
};

// Of all threads with a scope.
TensorMemory tensor_memory();

// How many bytes used and kept blocks together may have above `peak`.
std::size_t kept_memory_limit(std::size_t peak);

// Gives back the kept blocks that wait longest, until at most so many bytes wait.
void trim_tensor_memory(std::size_t most);

// Gives all kept blocks back, and counts the peak anew.
void release_tensor_memory();

}  // namespace sdtune::model
