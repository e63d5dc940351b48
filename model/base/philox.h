// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11).
// The same source compiles for the host and for CUDA, so both draw the same numbers.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SDTUNE_HOST_DEVICE __host__ __device__
#else
#define SDTUNE_HOST_DEVICE
#endif

namespace sdtune {

struct PhiloxBlock {
  std::uint32_t word[4];
};

// The block of 128 random bits at `counter` under `key`.
SDTUNE_HOST_DEVICE constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ull * counter.word[0];
    const std::uint64_t product1 = 0xCD9E8D57ull * counter.word[2];
    counter = PhiloxBlock{
        {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// (0, 1]: 24 bits, never zero, so its logarithm is finite.
SDTUNE_HOST_DEVICE constexpr float philox_uniform(std::uint32_t word) {
  return (static_cast<float>(word >> 8) + 1.0f) * (1.0f / 16777216.0f);
}

}  // namespace sdtune
