#include <algorithm>
#include <cmath>

#include "model/kernels/attention_rows.h"
#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"
#include "model/products/register_products.h"

namespace sdtune::model::attention {
namespace {

// Scores of a tile, their gradients before the softmax, and what the softmax needs of each query.
struct Tile {
  float* scores;          // [kKeys + kSpareRows, kQueries]; become the softmax
  float* gradients;       // those of the softmax; become those of the scores
  const float* log_sums;  // [kQueries]
  const float* dots;      // [kQueries]
};

// P = e^(S - log of its sum), dS = P (dP - dot), for the queries of one vector from `first` on.
template <class Cpu>
SDTUNE_INLINE void softmax_gradient(const Tile& tile, int64_t keys, int64_t first) {
  typename Cpu::Vector log_sum, dot, score, gradient;
  load_vector(tile.log_sums + first, log_sum);
  load_vector(tile.dots + first, dot);
  for (int64_t i = first; i < first + keys * kQueries; i += kQueries) {
    load_vector(tile.scores + i, score);
    load_vector(tile.gradients + i, gradient);
    score -= log_sum;
    exponentiate<Cpu>(score);
    store_vector(tile.scores + i, score);
    gradient = score * (gradient - dot);
    store_vector(tile.gradients + i, gradient);
  }
}

// A whole head as float32: matrices of rows of packed_width, with kSpareRows behind the last.
struct Packed {
  float *q, *dy, *dq;             // of the queries; q times 1 / sqrt(d), of dq that factor is still to come
  float *k, *v, *dk, *dv;         // of the keys
  float *q_columns, *dy_columns;  // blocks of [head, kQueries]
  float* dots;                    // [L]: sums of dy y
  float *scores, *gradients;      // of one tile: [kKeys + kSpareRows, kQueries]
};

int64_t whole_blocks(const Sizes& sizes) {
  return (sizes.queries + kQueries - 1) / kQueries * kQueries;
}

// Cuts the scratch memory into them; returns how many floats they are, which may be asked without memory.
int64_t cut(const Sizes& sizes, float* memory, Packed& to) {
  const int64_t width = packed_width(sizes), rows = (sizes.queries + kSpareRows) * width;
  const int64_t key_rows = (sizes.keys + kSpareRows) * width, tile = (kKeys + kSpareRows) * kQueries;
  int64_t used = 0;
  const auto next = [&](float*& part, int64_t floats) {
    part = memory == nullptr ? nullptr : memory + used;
    used += floats;
  };
  for (float** each : {&to.q, &to.dy, &to.dq}) next(*each, rows);
  for (float** each : {&to.k, &to.v, &to.dk, &to.dv}) next(*each, key_rows);
  for (float** each : {&to.q_columns, &to.dy_columns}) next(*each, whole_blocks(sizes) * sizes.head);
  next(to.dots, whole_blocks(sizes));
  for (float** each : {&to.scores, &to.gradients}) next(*each, tile);
  return used;
}

// y is read where dq will be.
SDTUNE_INLINE void read_head(const Sizes& sizes, const BackwardHead& head, const Packed& packed) {
  const int64_t width = packed_width(sizes);
  read_rows(head.q, 0, sizes.queries, sizes, 1.0f / std::sqrt(static_cast<float>(sizes.head)), packed.q);
  read_rows(head.dy, 0, sizes.queries, sizes, 1.0f, packed.dy);
  read_rows(head.y, 0, sizes.queries, sizes, 1.0f, packed.dq);
  for (int64_t r = 0; r < sizes.queries; ++r) {
    float sum = 0.0f;
    for (int64_t i = r * width; i < (r + 1) * width; ++i) sum += packed.dy[i] * packed.dq[i];
    packed.dots[r] = sum;
  }
  std::fill_n(packed.dq, (sizes.queries + kSpareRows) * width, 0.0f);
  read_rows(head.k, 0, sizes.keys, sizes, 1.0f, packed.k);
  read_rows(head.v, 0, sizes.keys, sizes, 1.0f, packed.v);
  for (float* each : {packed.dk, packed.dv}) std::fill_n(each, (sizes.keys + kSpareRows) * width, 0.0f);
  for (int64_t first = 0; first < sizes.queries; first += kQueries) {
    const int64_t count = std::min(kQueries, sizes.queries - first);
    transpose(packed.q + first * width, count, sizes, packed.q_columns + first * sizes.head);
    transpose(packed.dy + first * width, count, sizes, packed.dy_columns + first * sizes.head);
  }
}

template <class Cpu>
SDTUNE_INLINE void add_tile(const Sizes& sizes, const Packed& packed, const float* all_log_sums, int64_t key,
                            int64_t query) {
  const int64_t keys = std::min(kKeys, sizes.keys - key), queries = std::min(kQueries, sizes.queries - query);
  if (sizes.causal && key >= query + queries) return;
  const int64_t width = packed_width(sizes), used = used_width<Cpu>(sizes);
  const int64_t columns = (queries + 2 * Cpu::kLanes - 1) / (2 * Cpu::kLanes) * (2 * Cpu::kLanes);
  float log_sums[kQueries] = {}, dots[kQueries] = {}, ones[kKeys];
  std::copy_n(all_log_sums + query, queries, log_sums);
  std::copy_n(packed.dots + query, queries, dots);
  std::fill_n(ones, kKeys, 1.0f);
  float *scores = packed.scores, *gradients = packed.gradients;
  products::update<Cpu>({packed.k + key * width, width, 1}, {packed.q_columns + query * sizes.head, kQueries}, keys,
                        sizes.head, columns, nullptr, scores, kQueries);
  products::update<Cpu>({packed.v + key * width, width, 1}, {packed.dy_columns + query * sizes.head, kQueries}, keys,
                        sizes.head, columns, nullptr, gradients, kQueries);
  for (int64_t i = 0; i < columns; i += Cpu::kLanes)
    softmax_gradient<Cpu>({scores, gradients, log_sums, dots}, keys, i);
  if (sizes.causal) {
    hide_later_keys(scores, keys, key, query, 0.0f);
    hide_later_keys(gradients, keys, key, query, 0.0f);
  }
  products::update<Cpu>({scores, kQueries, 1}, {packed.dy + query * width, width}, keys, queries, used, ones,
                        packed.dv + key * width, width);
  products::update<Cpu>({gradients, kQueries, 1}, {packed.q + query * width, width}, keys, queries, used, ones,
                        packed.dk + key * width, width);
  products::update<Cpu>({gradients, 1, kQueries}, {packed.k + key * width, width}, queries, keys, used, ones,
                        packed.dq + query * width, width);
}

template <class Cpu>
SDTUNE_INLINE void run_head(const Sizes& sizes, const BackwardHead& head, const Packed& packed) {
  const int64_t width = packed_width(sizes);
  read_head(sizes, head, packed);
  for (int64_t key = 0; key < sizes.keys; key += kKeys) {
    for (int64_t query = 0; query < sizes.queries; query += kQueries)
      add_tile<Cpu>(sizes, packed, head.log_sums, key, query);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(sizes.head));
  for (int64_t r = 0; r < sizes.queries; ++r) write_row(head.dq, r, packed.dq + r * width, sizes, scale);
  for (int64_t r = 0; r < sizes.keys; ++r) {
    write_row(head.dk, r, packed.dk + r * width, sizes, 1.0f);
    write_row(head.dv, r, packed.dv + r * width, sizes, 1.0f);
  }
}

#if defined(__x86_64__)
SDTUNE_AVX2 void head_avx2(const Sizes& sizes, const BackwardHead& head, const Packed& packed) {
  run_head<Avx2>(sizes, head, packed);
}
SDTUNE_AVX512 void head_avx512(const Sizes& sizes, const BackwardHead& head, const Packed& packed) {
  run_head<Avx512>(sizes, head, packed);
}
SDTUNE_AVX2 void head_avx512_by_avx2(const Sizes& sizes, const BackwardHead& head, const Packed& packed) {
  run_head<Avx512ByAvx2>(sizes, head, packed);
}
#endif

template <void (*kRun)(const Sizes&, const BackwardHead&, const Packed&)>
void backward(const Sizes& sizes, const BackwardHead& head, float* memory) {
  Packed packed = {};
  cut(sizes, memory, packed);
  kRun(sizes, head, packed);
}

}  // namespace

int64_t backward_scratch(const Sizes& sizes, Vectors vectors) {
  if (vectors == Vectors::kAvx512Bfloat16) return backward_scratch_of_pairs(sizes);
  Packed nothing = {};
  return cut(sizes, nullptr, nothing);
}

BackwardOfHead backward_of_head(Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512Bfloat16) return backward_by_pairs;
  if (vectors == Vectors::kAvx512ByAvx2) return backward<head_avx512_by_avx2>;
  return vectors == Vectors::kAvx2 ? backward<head_avx2> : backward<head_avx512>;
#else
  return nullptr;
#endif
}

}  // namespace sdtune::model::attention
