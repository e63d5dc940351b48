#include <algorithm>
#include <cmath>

#include "model/kernels/attention_rows.h"
#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"

namespace sdtune::model::attention {
namespace {

// Scores lie with a row a key and a column a query, so that sums and maxima over keys are those of vectors.
struct Softmax {
  float* largest;  // [kQueries] of each query until now
  float* sums;     // [kQueries] of e^(score - largest)
  float* scales;   // [kQueries] what the results until now count, as larger scores came
};

// The next keys' scores [keys, kQueries] become e^(score - largest), for the queries of one vector from `first` on.
template <class Cpu>
SDTUNE_INLINE void next_keys(const Softmax& softmax, float* scores, int64_t keys, int64_t first) {
  using Vector = typename Cpu::Vector;
  Vector before, sum, row;
  load_vector(softmax.largest + first, before);
  Vector largest = before;
  for (int64_t key = 0; key < keys; ++key) {
    load_vector(scores + key * kQueries + first, row);
    largest = row > largest ? row : largest;
  }
  Vector scale = before - largest;
  exponentiate<Cpu>(scale);
  load_vector(softmax.sums + first, sum);
  sum *= scale;
  for (int64_t key = 0; key < keys; ++key) {
    load_vector(scores + key * kQueries + first, row);
    row -= largest;
    exponentiate<Cpu>(row);
    sum += row;
    store_vector(scores + key * kQueries + first, row);
  }
  store_vector(softmax.scales + first, scale);
  store_vector(softmax.sums + first, sum);
  store_vector(softmax.largest + first, largest);
}

template <class Cpu>
SDTUNE_INLINE void run_block(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                             float* scratch) {
  const int64_t width = packed_width(sizes), used = used_width<Cpu>(sizes);
  float* queries = scratch;                       // [head, kQueries]
  float* keys = queries + sizes.head * kQueries;  // [kKeys + kSpareRows, width]
  float* values = keys + (kKeys + kSpareRows) * width;
  float* scores = values + kKeys * width;                     // [kKeys + kSpareRows, kQueries]
  float* results = scores + (kKeys + kSpareRows) * kQueries;  // [kQueries, width]
  float largest[kQueries], sums[kQueries], scales[kQueries];
  std::fill_n(largest, kQueries, -1e30f);
  std::fill_n(sums, kQueries, 0.0f);
  const Softmax softmax = {largest, sums, scales};
  const int64_t columns = (count + 2 * Cpu::kLanes - 1) / (2 * Cpu::kLanes) * (2 * Cpu::kLanes);
  read_rows(head.q, first, count, sizes, 1.0f / std::sqrt(static_cast<float>(sizes.head)), results);
  transpose(results, count, sizes, queries);
  std::fill_n(results, kQueries * width, 0.0f);
  for (int64_t key = 0; key < sizes.keys; key += kKeys) {
    const int64_t now = std::min(kKeys, sizes.keys - key);
    read_rows(head.k, key, now, sizes, 1.0f, keys);
    read_rows(head.v, key, now, sizes, 1.0f, values);
    update<Cpu>({keys, width, 1}, {queries, kQueries}, now, sizes.head, columns, nullptr, scores, kQueries);
    for (int64_t i = 0; i < columns; i += Cpu::kLanes) next_keys<Cpu>(softmax, scores, now, i);
    update<Cpu>({scores, 1, kQueries}, {values, width}, count, now, used, scales, results, width);
  }
  for (int64_t r = 0; r < count; ++r) {
    write_row(head.y, first + r, results + r * width, sizes, 1.0f / sums[r]);
    head.log_sums[first + r] = largest[r] + std::log(sums[r]);
  }
}

#if defined(__x86_64__)
SDTUNE_AVX2 void block_avx2(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count, float* scratch) {
  run_block<Avx2>(sizes, head, first, count, scratch);
}
SDTUNE_AVX512 void block_avx512(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                                float* scratch) {
  run_block<Avx512>(sizes, head, first, count, scratch);
}
SDTUNE_AVX2 void block_avx512_by_avx2(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                                      float* scratch) {
  run_block<Avx512>(sizes, head, first, count, scratch);
}
#endif

}  // namespace

int64_t forward_scratch(const Sizes& sizes) {
  const int64_t width = packed_width(sizes), keys = kKeys + kSpareRows;
  return kQueries * (sizes.head + keys + width) + (keys + kKeys) * width;
}

ForwardBlock forward_block(Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512ByAvx2) return block_avx512_by_avx2;
  return vectors == Vectors::kAvx512 ? block_avx512 : block_avx2;
#else
  return nullptr;
#endif
}

}  // namespace sdtune::model::attention
