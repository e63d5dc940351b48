// What the passes of tiled attention read and write, and the passes for each kind of CPU.
#pragma once

#include <cstdint>

#include "model/kernels/attention.h"

namespace sdtune::model::attention {

struct Sizes {
  int64_t queries, keys, head;  // L, M, d
  bool causal;                  // query i sees keys 0 .. i alone
};

// The rows of one head of one sample in a tensor of float32 or bfloat16: row i begins `step` numbers behind row i - 1.
struct Rows {
  void* data;
  int64_t step;
  bool is_bfloat16;
};

struct ForwardHead {
  Rows q, k, v, y;
  float* log_sums;  // [L]: logs of the softmax' sums, for the backward pass
};

// Queries that are worked on together.
constexpr int64_t kQueries = 96;

// `count` queries from `first` on, a multiple of kQueries: in blocks that share what is read of keys and values. The
// result is the same to the bit however queries are divided.
using ForwardBlocks = void (*)(const Sizes& sizes, const ForwardHead& head, int64_t first, int64_t count,
                               float* scratch);
// `is_short`: by pairs the exponentials are short ones (attention_tiles.h).
ForwardBlocks forward_blocks(Vectors vectors, bool is_short);
// How many blocks of one head stay in a core's cache together.
int64_t blocks_in_cache(const Sizes& sizes);

// Floats of scratch memory that a pass needs.
int64_t forward_scratch(const Sizes& sizes, int64_t blocks);
int64_t backward_scratch(const Sizes& sizes, Vectors vectors);

struct BackwardHead {
  Rows q, k, v, y, dy, dq, dk, dv;
  const float* log_sums;
};

// A whole head.
using BackwardOfHead = void (*)(const Sizes& sizes, const BackwardHead& head, float* scratch);
BackwardOfHead backward_of_head(Vectors vectors);
// The one of kAvx512Bfloat16, for tensors of bfloat16.
void backward_by_pairs(const Sizes& sizes, const BackwardHead& head, float* scratch);
int64_t backward_scratch_of_pairs(const Sizes& sizes);

}  // namespace sdtune::model::attention
