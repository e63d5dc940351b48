// AdamW whose moments take 8 bits a number (adamw_8bit.h): the statement of adamw_8bit_kernel.cpp with the same bits. A
// warp owns a block of 256 numbers that share a scale, so nothing is exchanged beyond shuffles; one pass reads and
// writes everything once.
#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/numbers.cuh"
#include "train/optim/cuda/adamw_number.cuh"
#include "train/optim/cuda/launchers.cuh"

namespace sdtune::train {

using model::from_float;
using model::kThreads;
using model::kWarp;
using model::to_float;

namespace {

constexpr int kScaled = 256;             // kScaledBlock of adamw_8bit_kernel.h
constexpr int kEach = kScaled / kWarp;   // numbers of a thread
constexpr int kPadded = 256 + 256 / 32;  // of a table whose entries j stand at j + j / 32

// Both data types in shared memory. A search in halves reads entries that are powers of two apart, which would lie in
// one bank but for the padding.
struct SharedBook {
  float values[2][256];
  float midpoints[2][kPadded];
};

__device__ int padded(int entry) {
  return entry + entry / 32;
}

// DynamicCode::nearest(): the number of midpoints below x.
__device__ std::uint8_t nearest(const float* midpoints, float x) {
  int below = 0;
  for (int step = 128; step > 0; step /= 2) below += x > midpoints[padded(below + step - 1)] ? step : 0;
  return static_cast<std::uint8_t>(below);
}

// The largest magnitude of a warp's numbers. Bits without the sign grow as the numbers do, and not a number is above
// all.
__device__ float warp_largest(const float (&numbers)[kEach]) {
  int largest = 0;
  for (const float number : numbers) {
    const int bits = __float_as_int(number) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const int other = __shfl_xor_sync(0xFFFFFFFFu, largest, offset);
    largest = other > largest ? other : largest;
  }
  return __int_as_float(largest);
}

// Overwrites `numbers`. A block of zeros has the scale 0.
__device__ void encode(float (&numbers)[kEach], const float* midpoints, std::uint8_t (&codes)[kEach], float* scale) {
  const float largest = warp_largest(numbers);
  if (threadIdx.x % kWarp == 0) *scale = largest;
  for (int i = 0; i < kEach; ++i) {
    if (largest > 0) numbers[i] /= largest;
    codes[i] = nearest(midpoints, numbers[i]);
  }
}

// A thread's numbers of a block: neighbours, as packs, or every 32nd, one by one.
struct Lane {
  int first;  // in the block
  int step;
  int count;  // of the block
  bool is_pack;

  __device__ int number(int i) const { return first + i * step; }
  __device__ bool has(int i) const { return number(i) < count; }
};

template <typename T>
__device__ void load_codes(const T* from, const Lane& lane, T (&to)[kEach]) {
  if (lane.is_pack) {
    const auto pack = *reinterpret_cast<const model::Pack<T, kEach>*>(from + lane.first);
    for (int i = 0; i < kEach; ++i) to[i] = pack.value[i];
    return;
  }
  for (int i = 0; i < kEach; ++i) to[i] = lane.has(i) ? from[lane.number(i)] : T{0};
}

template <typename T>
__device__ void store_codes(const T (&from)[kEach], const Lane& lane, T* to) {
  if (lane.is_pack) {
    model::Pack<T, kEach> pack;
    for (int i = 0; i < kEach; ++i) pack.value[i] = from[i];
    *reinterpret_cast<model::Pack<T, kEach>*>(to + lane.first) = pack;
    return;
  }
  for (int i = 0; i < kEach; ++i) {
    if (lane.has(i)) to[lane.number(i)] = from[i];
  }
}

// Numbers in memory order: packs of 16 bytes, or each where the shape's order has it.
struct Place {
  const CudaCodedParameter& p;
  int block_begin;

  __device__ std::int64_t of(int number) const {
    if (p.taps == 1) return block_begin + number;
    const unsigned i = static_cast<unsigned>(block_begin + number), taps = p.taps, channels = p.channels;
    const unsigned plane = i / taps;
    return std::int64_t{plane / channels} * channels * taps + (i % taps) * channels + plane % channels;
  }
};

template <typename T>
__device__ void load_numbers(const T* from, const Lane& lane, const Place& place, float (&to)[kEach]) {
  if (lane.is_pack) {
    constexpr int kPack = model::kWide<T> < kEach ? model::kWide<T> : kEach;
    float part[kPack];
    for (int i = 0; i < kEach; ++i) {
      if (i % kPack == 0) model::load_floats(from + place.block_begin + lane.first + i, part);
      to[i] = part[i % kPack];
    }
    return;
  }
  for (int i = 0; i < kEach; ++i) to[i] = lane.has(i) ? to_float(from[place.of(lane.number(i))]) : 0.0f;
}

template <typename T>
__device__ void store_numbers(const float (&from)[kEach], const Lane& lane, const Place& place, T* to) {
  if (lane.is_pack) {
    constexpr int kPack = model::kWide<T> < kEach ? model::kWide<T> : kEach;
    for (int i = 0; i < kEach; i += kPack) {
      float part[kPack];
      for (int j = 0; j < kPack; ++j) part[j] = from[i + j];
      model::store_floats(part, to + place.block_begin + lane.first + i);
    }
    return;
  }
  for (int i = 0; i < kEach; ++i) {
    if (lane.has(i)) to[place.of(lane.number(i))] = from_float<T>(from[i]);
  }
}

template <typename Weight, typename Gradient>
__device__ void update_block(const CudaCodedParameter& p, int block, const AdamWScalars& scalars,
                             const SharedBook& book, bool is_wide) {
  const int begin = block * kScaled;
  const int rest = static_cast<int>(p.count - begin), lane_index = threadIdx.x % kWarp;
  const bool is_pack = is_wide && rest >= kScaled;
  const Lane lane{is_pack ? lane_index * kEach : lane_index, is_pack ? 1 : kWarp, rest < kScaled ? rest : kScaled,
                  is_pack};
  const Place place{p, begin};
  std::uint8_t mean_codes[kEach], square_codes[kEach];
  load_codes(p.mean_codes + begin, lane, mean_codes);
  load_codes(p.square_codes + begin, lane, square_codes);
  float gradient[kEach], master[kEach], mean[kEach], square[kEach];
  load_numbers(static_cast<const Gradient*>(p.gradient), lane, place, gradient);
  load_numbers(p.master, lane, place, master);
  const float mean_scale = p.mean_scales[block], square_scale = p.square_scales[block];
  for (int i = 0; i < kEach; ++i) {
    mean[i] = square[i] = 0.0f;
    if (!lane.has(i)) continue;
    mean[i] = book.values[0][mean_codes[i]] * mean_scale;
    square[i] = book.values[1][square_codes[i]] * square_scale;
    adamw_number(scalars, gradient[i], master[i], mean[i], square[i]);
  }
  encode(mean, book.midpoints[0], mean_codes, p.mean_scales + block);  // its shuffles come after all lanes' reads
  encode(square, book.midpoints[1], square_codes, p.square_scales + block);
  store_codes(mean_codes, lane, p.mean_codes + begin);
  store_codes(square_codes, lane, p.square_codes + begin);
  store_numbers(master, lane, place, p.master);
  if (p.weight != p.master) store_numbers(master, lane, place, static_cast<Weight*>(p.weight));
}

template <typename Weight, typename Gradient>
__global__ void adamw_8bit_kernel(const CudaCodedParameter* parameters, const CudaChunk* chunks,
                                  const CudaAdamWStep* step, const CudaCodeBook* book) {
  if (step->skip != 0) return;
  __shared__ SharedBook shared;
  for (int i = threadIdx.x; i < 2 * 256; i += kThreads) {
    shared.values[i / 256][i % 256] = book->values[i / 256][i % 256];
    shared.midpoints[i / 256][padded(i % 256)] = book->midpoints[i / 256][i % 256];
  }
  __syncthreads();
  const AdamWScalars scalars = step->scalars;
  const CudaChunk chunk = chunks[blockIdx.x];
  const CudaCodedParameter p = parameters[chunk.parameter];
  const bool is_wide = p.taps == 1 && model::is_aligned(p.weight, 16) && model::is_aligned(p.gradient, 16) &&
                       model::is_aligned(p.master, 16) && model::is_aligned(p.mean_codes, kEach) &&
                       model::is_aligned(p.square_codes, kEach);
  const ChunkPlace place = chunk_place(chunk, p.count);
  const int first = static_cast<int>(place.begin / kScaled), last = first + (place.count + kScaled - 1) / kScaled;
  for (int block = first + threadIdx.x / kWarp; block < last; block += kThreads / kWarp) {
    update_block<Weight, Gradient>(p, block, scalars, shared, is_wide);
  }
}

}  // namespace

void launch_adamw_8bit(const CudaCodedParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                       model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                       const CudaCodeBook* book, const model::CudaStream& stream) {
  if (chunk_count == 0) return;
  model::with_type(weight_type, [&](auto weight) {
    model::with_type(gradient_type, [&](auto gradient) {
      model::launch("adamw_8bit", adamw_8bit_kernel<decltype(weight), decltype(gradient)>,
                    dim3(static_cast<unsigned>(chunk_count)), stream, parameters, chunks, step, book);
    });
  });
}

}  // namespace sdtune::train
