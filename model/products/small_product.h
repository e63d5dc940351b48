// Products of small matrices on a CPU, whose sums stay in registers (register_products.h).
#pragma once

#include <torch/types.h>

#include <array>

#include "model/products/cpu_vectors.h"

namespace sdtune::model {

// Whether small_product multiplies [m, k] by [k, n] of the dtype of `like`, float32 on a CPU with AVX2 (without AVX-512
// from 32 rows on), or bfloat16 on one with AVX-512's instructions for it and with k and n even: where the three
// matrices have at most 2^17 numbers each, unless the kind's choice is the library's (core/cpu_implementation.h). For
// such oneDNN spends as long on its call and on blocks of memory as on numbers, and MKL has no kernels for AMD's
// AVX-512: 64 x 208 by 208 x 208 in float32 takes 24 us, by oneDNN 37 and by MKL 53, on one core of an EPYC of
// family 26. Larger ones do not stay in the second cache.
bool is_small_product(const torch::Tensor& like, const std::array<int64_t, 3>& sizes);

// a [m, k], b [k, n], bias [n] or undefined -> a b + bias, [m, n]; of one dtype, without gradients. Sums are float32,
// and of bfloat16 rounded once. An element's bits depend on its row, its column and their length alone, neither on the
// other sizes nor on the number of threads.
torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias = {});
// `vectors`: of float32.
torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias, Vectors vectors);

}  // namespace sdtune::model
