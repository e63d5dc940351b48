// Which of LibTorch's errors say that memory ran out.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

namespace sdtune::model {

// True for c10::OutOfMemoryError (a GPU), and for what a CPU or a driver reports as a plain c10::Error: LibTorch's CPU
// allocator says "can't allocate memory" (posix_memalign, mmap) or "not enough memory", CUDA "out of memory", cuBLAS
// and cuDNN that an allocation failed.
bool is_out_of_memory(const c10::Error& error);
// Also for std::bad_alloc: the system's memory, or a device's (KernelOutOfMemory).
bool is_out_of_memory(const std::exception& error);

// What a std::bad_alloc says for people.
std::string words_of(const std::bad_alloc& error);

}  // namespace sdtune::model
