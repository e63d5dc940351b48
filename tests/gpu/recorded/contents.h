// What little of the GPU's memory has contents: keys of random numbers and what is drawn from them, because that kernel
// proves itself against numbers of the host (model/core/random.cpp). All else is zero when it is copied to the host.
#pragma once

#include <cstddef>
#include <vector>

namespace sdtune::record {

inline constexpr std::size_t kMostBytes = std::size_t{1} << 16;  // that are kept of one address

// At most kMostBytes; longer ones are forgotten.
void keep_contents(const void* address, const void* bytes, std::size_t count);
// Empty where nothing is known.
std::vector<char> contents_of(const void* address);

}  // namespace sdtune::record
