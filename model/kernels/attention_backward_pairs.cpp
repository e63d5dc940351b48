// Attention's backward pass by AVX-512's products of pairs of bfloat16 numbers. The softmax and its gradient are
// computed in float32 and rounded to bfloat16 where they are multiplied, as in LibTorch's attention in bfloat16.
#include <algorithm>
#include <cmath>

#include "model/kernels/attention_rows.h"
#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"
#include "model/products/register_products.h"

namespace sdtune::model::attention {
namespace {

using Pairs = Avx512Bfloat16;
using PairVector = Pairs::Vector;

constexpr int64_t kNumbers = 2;  // of a pair
constexpr int64_t kTileRows = kKeys + kSpareRows;
constexpr int64_t kRowOfPairs = kQueries / kNumbers;  // floats of a row of a tile whose pairs are neighbouring queries

// Scores of a tile [kTileRows, kQueries], their gradients, and both rounded for the products.
struct PairTile {
  float *scores, *softmax_gradients;
  float *softmax, *gradients;  // [kTileRows, kRowOfPairs], a pair two queries
  float* gradients_of_keys;    // [kKeys / 2, kQueries], a pair two keys
};

// A whole head. What is multiplied is pairs of bfloat16 numbers; the gradients are sums in float32, with a row of
// packed_width a query or a key. Of q, dq and dk the factor 1 / sqrt(d) is still to come.
struct PairHead {
  float *q_columns, *dy_columns;  // blocks of [head / 2, kQueries]
  float *q_rows, *dy_rows;        // blocks of [kQueries / 2, packed_width], a pair two queries
  float *k, *v;                   // rows of packed_width, a pair two numbers of a row
  float* k_rows;                  // blocks of [kKeys / 2, packed_width], a pair two keys
  float *dq, *dk, *dv;
  float* dots;  // [L]: sums of dy y
  PairTile tile;
};

int64_t whole_blocks(int64_t rows, int64_t block) {
  return (rows + block - 1) / block * block;
}

// Cuts the scratch memory into them; returns how many floats they are, which may be asked without memory.
int64_t cut(const Sizes& sizes, float* memory, PairHead& to) {
  const int64_t width = packed_width(sizes), queries = whole_blocks(sizes.queries, kQueries);
  const int64_t query_rows = (sizes.queries + kSpareRows) * width, key_rows = (sizes.keys + kSpareRows) * width;
  int64_t used = 0;
  const auto next = [&](float*& part, int64_t floats) {
    part = memory == nullptr ? nullptr : memory + used;
    used += floats;
  };
  for (float** each : {&to.q_columns, &to.dy_columns}) next(*each, queries * sizes.head / kNumbers);
  for (float** each : {&to.q_rows, &to.dy_rows}) next(*each, queries / kNumbers * width);
  for (float** each : {&to.k, &to.v, &to.dk, &to.dv}) next(*each, key_rows);
  next(to.k_rows, whole_blocks(sizes.keys, kKeys) / kNumbers * width);
  next(to.dq, query_rows);
  next(to.dots, queries);
  for (float** each : {&to.tile.scores, &to.tile.softmax_gradients}) next(*each, kTileRows * kQueries);
  for (float** each : {&to.tile.softmax, &to.tile.gradients}) next(*each, kTileRows * kRowOfPairs);
  next(to.tile.gradients_of_keys, kKeys / kNumbers * kQueries);
  return used;
}

SDTUNE_INLINE void read_head(const Sizes& sizes, const BackwardHead& head, const PairHead& packed) {
  const int64_t width = packed_width(sizes);
  for (int64_t first = 0; first < sizes.queries; first += kQueries) {
    const int64_t count = std::min(kQueries, sizes.queries - first);
    read_columns_of_pairs(head.q, first, count, sizes, packed.q_columns + first * sizes.head / kNumbers);
    read_columns_of_pairs(head.dy, first, count, sizes, packed.dy_columns + first * sizes.head / kNumbers);
    read_pairs_of_rows(head.q, first, count, sizes, packed.q_rows + first / kNumbers * width);
    read_pairs_of_rows(head.dy, first, count, sizes, packed.dy_rows + first / kNumbers * width);
  }
  for (int64_t r = 0; r < sizes.queries; ++r) {
    const c10::BFloat16 *dy = row_of(head.dy, r), *y = row_of(head.y, r);
    float sum = 0.0f;
    for (int64_t i = 0; i < sizes.head; ++i) sum += load(dy + i) * load(y + i);
    packed.dots[r] = sum;
  }
  read_pairs_of_columns(head.k, 0, sizes.keys, sizes, packed.k);
  read_pairs_of_columns(head.v, 0, sizes.keys, sizes, packed.v);
  for (int64_t first = 0; first < sizes.keys; first += kKeys) {
    const int64_t count = std::min(kKeys, sizes.keys - first);
    read_pairs_of_rows(head.k, first, count, sizes, packed.k_rows + first / kNumbers * width);
  }
  std::fill_n(packed.dq, (sizes.queries + kSpareRows) * width, 0.0f);
  for (float* each : {packed.dk, packed.dv}) std::fill_n(each, (sizes.keys + kSpareRows) * width, 0.0f);
}

// What the softmax needs of the queries of one vector, and what their scores are multiplied with.
struct VectorOfQueries {
  PairVector log_sum, dot;
  float factor;
};

// P = e^(factor S - log of its sum), dS = P (dP - dot), of one key: S and dP become P and dS.
SDTUNE_INLINE void softmax_gradient(const VectorOfQueries& queries, PairVector& score, PairVector& gradient) {
  score = score * queries.factor - queries.log_sum;
  exponentiate<Pairs>(score);
  gradient = score * (gradient - queries.dot);
}

// Two keys of a tile, or the last one alone, and the queries of two vectors from `first` on.
SDTUNE_INLINE void round_two_keys(const PairTile& tile, const VectorOfQueries (&queries)[2], int64_t key,
                                  bool has_second, int64_t first) {
  PairVector score[2][2] = {}, gradient[2][2] = {};  // [key][vector]
  for (int64_t k = 0; k < (has_second ? 2 : 1); ++k) {
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t at = (key + k) * kQueries + first + i * Pairs::kLanes;
      load_vector(tile.scores + at, score[k][i]);
      load_vector(tile.softmax_gradients + at, gradient[k][i]);
      softmax_gradient(queries[i], score[k][i], gradient[k][i]);
    }
    PairVector rounded;
    const int64_t at = (key + k) * kRowOfPairs + first / kNumbers;
    join(score[k][0], score[k][1], rounded);
    store_vector(tile.softmax + at, rounded);
    join(gradient[k][0], gradient[k][1], rounded);
    store_vector(tile.gradients + at, rounded);
  }
  for (int64_t i = 0; i < 2; ++i) {
    PairVector pairs;
    pair_up(gradient[0][i], gradient[1][i], pairs);
    store_vector(tile.gradients_of_keys + key / kNumbers * kQueries + first + i * Pairs::kLanes, pairs);
  }
}

SDTUNE_INLINE void add_tile(const Sizes& sizes, const PairHead& packed, const float* all_log_sums, int64_t key,
                            int64_t query) {
  const int64_t keys = std::min(kKeys, sizes.keys - key), queries = std::min(kQueries, sizes.queries - query);
  if (sizes.causal && key >= query + queries) return;
  const int64_t width = packed_width(sizes), used = used_width<Pairs>(sizes), depth = sizes.head / kNumbers;
  const int64_t columns = (queries + 2 * Pairs::kLanes - 1) / (2 * Pairs::kLanes) * (2 * Pairs::kLanes);
  const PairTile& tile = packed.tile;
  float log_sums[kQueries] = {}, dots[kQueries] = {}, ones[kKeys];
  std::copy_n(all_log_sums + query, queries, log_sums);
  std::copy_n(packed.dots + query, queries, dots);
  std::fill_n(ones, kKeys, 1.0f);
  products::update<Pairs>({packed.k + key * width, width, 1}, {packed.q_columns + query * depth, kQueries}, keys, depth,
                          columns, nullptr, tile.scores, kQueries);
  products::update<Pairs>({packed.v + key * width, width, 1}, {packed.dy_columns + query * depth, kQueries}, keys,
                          depth, columns, nullptr, tile.softmax_gradients, kQueries);
  if (sizes.causal) hide_later_keys(tile.scores, keys, key, query, kLeastScore);
  const float factor = 1.0f / std::sqrt(static_cast<float>(sizes.head));
  for (int64_t first = 0; first < columns; first += 2 * Pairs::kLanes) {
    VectorOfQueries of[2];
    for (int64_t i = 0; i < 2; ++i) {
      load_vector(log_sums + first + i * Pairs::kLanes, of[i].log_sum);
      load_vector(dots + first + i * Pairs::kLanes, of[i].dot);
      of[i].factor = factor;
    }
    for (int64_t k = 0; k + 1 < keys; k += kNumbers) round_two_keys(tile, of, k, true, first);
    if (keys % kNumbers != 0) round_two_keys(tile, of, keys - 1, false, first);
  }
  const int64_t query_pairs = (queries + 1) / kNumbers, key_pairs = (keys + 1) / kNumbers;
  products::update<Pairs>({tile.softmax, kRowOfPairs, 1}, {packed.dy_rows + query / kNumbers * width, width}, keys,
                          query_pairs, used, ones, packed.dv + key * width, width);
  products::update<Pairs>({tile.gradients, kRowOfPairs, 1}, {packed.q_rows + query / kNumbers * width, width}, keys,
                          query_pairs, used, ones, packed.dk + key * width, width);
  products::update<Pairs>({tile.gradients_of_keys, 1, kQueries}, {packed.k_rows + key / kNumbers * width, width},
                          queries, key_pairs, used, ones, packed.dq + query * width, width);
}

SDTUNE_AVX512_BF16 void run_head(const Sizes& sizes, const BackwardHead& head, const PairHead& packed) {
  const int64_t width = packed_width(sizes);
  read_head(sizes, head, packed);
  for (int64_t key = 0; key < sizes.keys; key += kKeys) {
    for (int64_t query = 0; query < sizes.queries; query += kQueries)
      add_tile(sizes, packed, head.log_sums, key, query);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(sizes.head));
  for (int64_t r = 0; r < sizes.queries; ++r) write_row(head.dq, r, packed.dq + r * width, sizes, scale);
  for (int64_t r = 0; r < sizes.keys; ++r) {
    write_row(head.dk, r, packed.dk + r * width, sizes, scale);
    write_row(head.dv, r, packed.dv + r * width, sizes, 1.0f);
  }
}

}  // namespace

int64_t backward_scratch_of_pairs(const Sizes& sizes) {
  PairHead nothing = {};
  return cut(sizes, nullptr, nothing);
}

void backward_by_pairs(const Sizes& sizes, const BackwardHead& head, float* memory) {
  PairHead packed = {};
  cut(sizes, memory, packed);
  run_head(sizes, head, packed);
}

}  // namespace sdtune::model::attention
