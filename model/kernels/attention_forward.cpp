#include <algorithm>
#include <cmath>

#include "model/kernels/attention_rows.h"
#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"
#include "model/products/register_products.h"

namespace sdtune::model::attention {
namespace {

// Scores lie with a row a key and a column a query, so that sums and maxima over keys are those of vectors.
struct Softmax {
  float* largest;  // [kQueries] of each query until now
  float* sums;     // [kQueries] of e^(score - largest)
  float* scales;   // [kQueries] what the results until now count, as larger scores came
  float factor;    // of pairs: 1 / sqrt(head), which queries in float32 have in them, and the unit of short ones
};

template <class Cpu>
SDTUNE_INLINE void exponential_of(typename Cpu::Vector& score) {
  if constexpr (kIsShort<Cpu>) {
    short_power_of_two(score);
  } else {
    exponentiate<Cpu>(score);
  }
}

// The next keys' scores [keys, kQueries] become e^(score - largest), for the queries of one vector from `first` on.
// Of pairs they become pairs of keys, [(keys + 1) / 2, kQueries].
template <class Cpu>
SDTUNE_INLINE void next_keys(const Softmax& softmax, float* scores, int64_t keys, int64_t first) {
  using Vector = typename Cpu::Vector;
  Vector before, sum, row, largest = Vector{} + kLeastScore;
  for (int64_t key = 0; key < keys; ++key) {
    load_vector(scores + key * kQueries + first, row);
    largest = row > largest ? row : largest;
  }
  if constexpr (Cpu::kHasPairs) largest *= softmax.factor;
  load_vector(softmax.largest + first, before);
  largest = before > largest ? before : largest;
  Vector scale = before - largest;
  exponential_of<Cpu>(scale);
  load_vector(softmax.sums + first, sum);
  sum *= scale;
  const auto exponential = [&](int64_t key, Vector& score) SDTUNE_LAMBDA {
    load_vector(scores + key * kQueries + first, score);
    if constexpr (Cpu::kHasPairs) score *= softmax.factor;
    score -= largest;
    exponential_of<Cpu>(score);
    sum += score;
  };
  for (int64_t key = 0; key < keys; key += Cpu::kHasPairs ? 2 : 1) {
    exponential(key, row);
    if constexpr (Cpu::kHasPairs) {
      Vector next{}, pairs;
      if (key + 1 < keys) exponential(key + 1, next);
      pair_up(row, next, pairs);
      store_vector(scores + key / 2 * kQueries + first, pairs);
    } else {
      store_vector(scores + key * kQueries + first, row);
    }
  }
  store_vector(softmax.scales + first, scale);
  store_vector(softmax.sums + first, sum);
  store_vector(softmax.largest + first, largest);
}

// What a block of kQueries queries keeps from keys to keys.
struct Block {
  Block(const Sizes& sizes, float* memory)
      : queries(memory),
        results(queries + sizes.head * kQueries),
        largest(results + packed_width(sizes) * kQueries),
        sums(largest + kQueries) {}
  static int64_t floats(const Sizes& sizes) { return kQueries * (sizes.head + packed_width(sizes) + 2); }

  float* queries;  // [head, kQueries]
  float* results;  // [kQueries, packed_width]
  float* largest;  // [kQueries], as sums: see Softmax
  float* sums;
};

template <class Cpu>
SDTUNE_INLINE float score_factor(const Sizes& sizes) {
  return (kIsShort<Cpu> ? kLog2E : 1.0f) / std::sqrt(static_cast<float>(sizes.head));
}

template <class Cpu>
SDTUNE_INLINE void begin(const Block& block, const Sizes& sizes, const Rows& q, int64_t first, int64_t count) {
  if constexpr (Cpu::kHasPairs) {
    read_columns_of_pairs(q, first, count, sizes, block.queries);
  } else {
    read_rows(q, first, count, sizes, score_factor<Cpu>(sizes), block.results);
    transpose(block.results, count, sizes, block.queries);
  }
  std::fill_n(block.results, kQueries * packed_width(sizes), 0.0f);
  std::fill_n(block.largest, kQueries, kLeastScore);
  std::fill_n(block.sums, kQueries, 0.0f);
}

// Keys and values that were packed for all blocks, and where the scores of one go.
struct KeyTile {
  int64_t first, count;
  float* keys;    // [kKeys + kSpareRows, packed_width]
  float* values;  // [kKeys, packed_width]
  float* scores;  // [kKeys + kSpareRows, kQueries]
};

// `query`: the block's first one, of `count`.
template <class Cpu>
SDTUNE_INLINE void add_keys(const Block& block, const Sizes& sizes, const KeyTile& tile, int64_t query, int64_t count) {
  if (sizes.causal && tile.first >= query + count) return;
  const int64_t width = packed_width(sizes);
  const int64_t columns = (count + 2 * Cpu::kLanes - 1) / (2 * Cpu::kLanes) * (2 * Cpu::kLanes);
  float scales[kQueries];
  const Softmax softmax = {block.largest, block.sums, scales, score_factor<Cpu>(sizes)};
  constexpr int64_t kNumbers = Cpu::kHasPairs ? 2 : 1;  // of what is multiplied at once
  products::update<Cpu>({tile.keys, width, 1}, {block.queries, kQueries}, tile.count, sizes.head / kNumbers, columns,
                        nullptr, tile.scores, kQueries);
  if (sizes.causal) hide_later_keys(tile.scores, tile.count, tile.first, query, kLeastScore);
  for (int64_t i = 0; i < columns; i += Cpu::kLanes) next_keys<Cpu>(softmax, tile.scores, tile.count, i);
  products::update<Cpu>({tile.scores, 1, kQueries}, {tile.values, width}, count, (tile.count + kNumbers - 1) / kNumbers,
                        used_width<Cpu>(sizes), scales, block.results, width);
}

template <class Cpu>
SDTUNE_INLINE void finish(const Block& block, const Sizes& sizes, const ForwardHead& head, int64_t first,
                          int64_t count) {
  for (int64_t r = 0; r < count; ++r) {
    write_row(head.y, first + r, block.results + r * packed_width(sizes), sizes, 1.0f / block.sums[r]);
    head.log_sums[first + r] = (kIsShort<Cpu> ? kLn2 : 1.0f) * block.largest[r] + std::log(block.sums[r]);
  }
}

template <class Cpu>
SDTUNE_INLINE void run_blocks(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                              float* scratch) {
  const int64_t width = packed_width(sizes);
  KeyTile tile = {};
  tile.keys = scratch;
  tile.values = tile.keys + (kKeys + kSpareRows) * width;
  tile.scores = tile.values + kKeys * width;
  float* memory = tile.scores + (kKeys + kSpareRows) * kQueries;
  const auto block_at = [&](int64_t at) { return Block(sizes, memory + at / kQueries * Block::floats(sizes)); };
  for (int64_t at = 0; at < count; at += kQueries) {
    begin<Cpu>(block_at(at), sizes, head.q, first + at, std::min(kQueries, count - at));
  }
  for (int64_t key = 0; key < sizes.keys; key += kKeys) {
    tile.first = key;
    tile.count = std::min(kKeys, sizes.keys - key);
    if constexpr (Cpu::kHasPairs) {
      read_pairs_of_columns(head.k, key, tile.count, sizes, tile.keys);
      read_pairs_of_rows(head.v, key, tile.count, sizes, tile.values);
    } else {
      read_rows(head.k, key, tile.count, sizes, 1.0f, tile.keys);
      read_rows(head.v, key, tile.count, sizes, 1.0f, tile.values);
    }
    for (int64_t at = 0; at < count; at += kQueries) {
      add_keys<Cpu>(block_at(at), sizes, tile, first + at, std::min(kQueries, count - at));
    }
  }
  for (int64_t at = 0; at < count; at += kQueries) {
    finish<Cpu>(block_at(at), sizes, head, first + at, std::min(kQueries, count - at));
  }
}

#if defined(__x86_64__)
SDTUNE_AVX2 void blocks_avx2(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                             float* scratch) {
  run_blocks<Avx2>(sizes, head, first, count, scratch);
}
SDTUNE_AVX512 void blocks_avx512(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                                 float* scratch) {
  run_blocks<Avx512>(sizes, head, first, count, scratch);
}
SDTUNE_AVX512_BF16 void blocks_avx512_bfloat16(const Sizes& sizes, const ForwardHead& head, int64_t first,
                                               int64_t count, float* scratch) {
  run_blocks<Avx512Bfloat16>(sizes, head, first, count, scratch);
}
SDTUNE_AVX512_BF16 void blocks_avx512_short(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                                            float* scratch) {
  run_blocks<Avx512ShortExponential>(sizes, head, first, count, scratch);
}
SDTUNE_AVX2 void blocks_avx512_by_avx2(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                                       float* scratch) {
  run_blocks<Avx512ByAvx2>(sizes, head, first, count, scratch);
}
#endif

}  // namespace

int64_t forward_scratch(const Sizes& sizes, int64_t blocks) {
  const int64_t keys = kKeys + kSpareRows;
  return (keys + kKeys) * packed_width(sizes) + keys * kQueries + blocks * Block::floats(sizes);
}

int64_t blocks_in_cache(const Sizes& sizes) {
  constexpr int64_t kFloats = 40960;  // a third of the second cache of an AMD EPYC of family 25
  return std::max<int64_t>(1, kFloats / Block::floats(sizes));
}

ForwardBlocks forward_blocks(Vectors vectors, [[maybe_unused]] bool is_short) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512ByAvx2) return blocks_avx512_by_avx2;
  if (vectors == Vectors::kAvx512Bfloat16) return is_short ? blocks_avx512_short : blocks_avx512_bfloat16;
  return vectors == Vectors::kAvx512 ? blocks_avx512 : blocks_avx2;
#else
  return nullptr;
#endif
}

}  // namespace sdtune::model::attention
