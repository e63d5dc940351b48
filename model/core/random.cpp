#include "model/core/random.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/core/draw_counter.h"
#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"

namespace sdtune::model {

namespace {

// Numbers a thread takes at once: below this a second thread costs more than it brings.
constexpr std::int64_t kGrainBlocks = 16384;

DrawCounter checked_counter(Draw purpose, const SampleKey& key) {
  TORCH_CHECK(key.step >> kStepBits == 0, "random draw: step ", key.step, " is not below 2^", kStepBits);
  TORCH_CHECK(key.sample >> kSampleBits == 0, "random draw: sample ", key.sample, " is not below 2^", kSampleBits);
  return draw_counter(static_cast<std::uint32_t>(purpose), key.step, key.sample, key.class_image);
}

DrawCounter checked_counter(const DrawKey& key) {
  return checked_counter(key.purpose, {key.step, key.sample, key.class_image});
}

std::uint64_t first_word(const DrawKey& key) {
  const PhiloxBlock bits = draw_block(key.seed, checked_counter(key), 0);
  return (std::uint64_t{bits.word[0]} << 32) | bits.word[1];
}

// floor(word / 2^64 * below).
std::int64_t scaled(std::uint64_t word, std::int64_t below) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(word) * static_cast<std::uint64_t>(below)) >> 64);
}

// Writes blocks [begin, end) of a draw of `count` numbers.
void fill_blocks(float* out, std::int64_t count, std::uint64_t seed, const DrawCounter& counter, std::int64_t begin,
                 std::int64_t end) {
  const std::int64_t whole = std::min(end, count / 4);
#pragma omp simd
  for (std::int64_t block = begin; block < whole; ++block) {
    normal_block(draw_block(seed, counter, static_cast<std::uint32_t>(block)), out + block * 4);
  }
  for (std::int64_t block = std::max(begin, whole); block < end; ++block) {
    float last[4];
    normal_block(draw_block(seed, counter, static_cast<std::uint32_t>(block)), last);
    std::copy(last, last + (count - block * 4), out + block * 4);
  }
}

void fill_normal(float* out, std::int64_t count, std::uint64_t seed, const DrawCounter& counter) {
  const std::int64_t blocks = (count + 3) / 4;
  TORCH_CHECK(blocks <= std::int64_t{1} << 32, "random draw: ", count, " numbers for one sample are too many");
  at::parallel_for(0, blocks, kGrainBlocks,
                   [&](std::int64_t begin, std::int64_t end) { fill_blocks(out, count, seed, counter, begin, end); });
}

// Rows of normal numbers on the host.
void fill_rows(const torch::Tensor& out, std::uint64_t seed, const std::vector<DrawCounter>& counters) {
  const std::int64_t row_size = out.numel() / out.size(0);
  auto* numbers = out.mutable_data_ptr<float>();
  for (std::size_t row = 0; row < counters.size(); ++row) {
    fill_normal(numbers + static_cast<std::int64_t>(row) * row_size, row_size, seed, counters[row]);
  }
}

// The same by our kernel. Keys travel as packed counters, from pinned memory so that nothing waits.
void fill_rows_by_kernel(const CudaTable& kernels, const torch::Tensor& out, std::uint64_t seed,
                         const std::vector<DrawCounter>& counters) {
  const auto rows = static_cast<std::int64_t>(counters.size());
  const bool pinned = out.is_cuda();
  torch::Tensor host = torch::empty({rows * 3 + 2}, torch::dtype(torch::kInt32).pinned_memory(pinned));
  auto* words = reinterpret_cast<std::uint32_t*>(host.data_ptr<std::int32_t>());
  words[0] = static_cast<std::uint32_t>(seed);
  words[1] = static_cast<std::uint32_t>(seed >> 32);
  for (std::size_t row = 0; row < counters.size(); ++row) {
    words[2 + row * 3] = counters[row].sample_low;
    words[3 + row * 3] = counters[row].step_low;
    words[4 + row * 3] = counters[row].high;
  }
  const torch::Tensor keys = host.to(out.device(), /*non_blocking=*/true);
  kernels.philox_normal(out.mutable_data_ptr<float>(), rows, out.numel() / rows,
                        reinterpret_cast<const std::uint32_t*>(keys.const_data_ptr<std::int32_t>()),
                        kernel_stream(out.device()));
}

// Rows of both on one key, which must agree in every bit.
KernelDifference compare_rows(const CudaTable& kernels, torch::Device device) {
  const std::vector<DrawCounter> counters = {draw_counter(0, 5, 7, false), draw_counter(2, 1u << 20, 8, true)};
  const torch::Tensor theirs = torch::empty({2, 4099}, torch::kFloat32);
  const torch::Tensor ours = torch::empty_like(theirs, torch::dtype(torch::kFloat32).device(device));
  fill_rows(theirs, 1234567890123, counters);
  fill_rows_by_kernel(kernels, ours, 1234567890123, counters);
  return worst_difference({{"the numbers", ours, theirs}}, 0);
}

// Rows on a device that is not the host: by our kernel, or drawn on the host and copied.
void fill_rows_on_device(const torch::Tensor& out, std::uint64_t seed, const std::vector<DrawCounter>& counters) {
  if (const CudaTable* kernels = kernel_table(out.device())) {
    require_proven({"philox_normal", out.device(), torch::kFloat32},
                   [&] { return compare_rows(*kernels, out.device()); });
    fill_rows_by_kernel(*kernels, out, seed, counters);
    return;
  }
  const torch::Tensor host = torch::empty(out.sizes(), torch::kFloat32);
  fill_rows(host, seed, counters);
  out.copy_(host);
}

}  // namespace

torch::Tensor draw_normal(const DrawKey& key, torch::IntArrayRef shape) {
  torch::Tensor out = torch::empty(shape, torch::kFloat32);
  fill_normal(out.data_ptr<float>(), out.numel(), key.seed, checked_counter(key));
  return out;
}

torch::Tensor draw_normal_batch(std::uint64_t seed, Draw purpose, const std::vector<SampleKey>& keys,
                                torch::IntArrayRef shape, torch::Device device) {
  TORCH_CHECK(device.is_cpu() || device.is_cuda(), "random draw: no generator for device ", device);
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(keys.size())};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  torch::Tensor out = torch::empty(sizes, torch::dtype(torch::kFloat32).device(device));
  if (out.numel() == 0) return out;
  std::vector<DrawCounter> counters;
  counters.reserve(keys.size());
  for (const SampleKey& key : keys) counters.push_back(checked_counter(purpose, key));
  const bool on_host = device.is_cpu() && !KernelStandIn::is_active();
  on_host ? fill_rows(out, seed, counters) : fill_rows_on_device(out, seed, counters);
  return out;
}

double draw_uniform(const DrawKey& key) {
  return static_cast<double>(first_word(key) >> 11) * 0x1p-53;
}

std::int64_t draw_integer(const DrawKey& key, std::int64_t below) {
  TORCH_CHECK(below > 0, "draw_integer: `below` must be above 0, got ", below);
  return scaled(first_word(key), below);
}

torch::Tensor draw_integer_batch(std::uint64_t seed, Draw purpose, const std::vector<SampleKey>& keys,
                                 std::int64_t below) {
  torch::Tensor out = torch::empty({static_cast<std::int64_t>(keys.size())}, torch::kInt64);
  auto* values = out.data_ptr<std::int64_t>();
  for (const SampleKey& key : keys) {
    *values++ = draw_integer({seed, purpose, key.step, key.sample, key.class_image}, below);
  }
  return out;
}

std::vector<std::int64_t> draw_permutation(std::uint64_t seed, Draw purpose, std::uint64_t epoch, std::int64_t count) {
  TORCH_CHECK(count >= 0, "draw_permutation: `count` must not be negative, got ", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t last = count - 1; last > 0; --last) {
    const std::int64_t other = draw_integer({seed, purpose, epoch, static_cast<std::uint64_t>(last), false}, last + 1);
    std::swap(order[static_cast<std::size_t>(last)], order[static_cast<std::size_t>(other)]);
  }
  return order;
}

}  // namespace sdtune::model
