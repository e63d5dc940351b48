#include "model/core/draw_counter.h"
#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;

void check_rows(Check& check, std::int64_t row_size) {
  const std::uint64_t seed = 42 | (std::uint64_t{1} << 32);
  const DrawCounter counters[] = {draw_counter(0, 5, 7, false), draw_counter(2, 5, 8, true),
                                  draw_counter(11, std::uint64_t{1} << 40, std::uint64_t{1} << 41, false)};
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (const DrawCounter& c : counters) words.insert(words.end(), {c.sample_low, c.step_low, c.high});
  DeviceVector<std::uint32_t> device_words(words);
  DeviceVector<float> out(std::vector<float>(static_cast<std::size_t>(3 * row_size)));
  sdtune_cuda_table()->philox_normal(out.data(), 3, row_size, device_words.data(), kStream);
  const std::vector<float> got = out.host();
  std::int64_t different = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t i = 0; i < row_size; ++i) {
      float four[4];
      normal_block(draw_block(seed, counters[row], static_cast<std::uint32_t>(i / 4)), four);
      different += std::memcmp(&got[static_cast<std::size_t>(row * row_size + i)], &four[i % 4], 4) != 0 ? 1 : 0;
    }
  }
  check.equal("rows of " + std::to_string(row_size), different == 0);
}

}  // namespace

void check_random() {
  Check check("philox_normal");
  for (const std::int64_t row_size : {1, 2, 3, 4, 5, 1023, 1024, 4099}) check_rows(check, row_size);
}

}  // namespace sdtune::test
