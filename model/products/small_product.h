// Products of small matrices on a CPU, whose sums stay in registers (register_products.h).
#pragma once

#include <torch/types.h>

#include <array>

#include "model/products/cpu_vectors.h"

namespace sdtune::model {

using ProductSizes = std::array<int64_t, 3>;  // m, k, n

// Whether small_product multiplies [m, k] by [k, n] of the dtype of `like`, on a CPU, unless the kind's choice is the
// library's (core/cpu_implementation.h). With AVX-512: float32, or bfloat16 with its instructions for that and with k
// and n even, where the three matrices have at most 2^17 numbers each. For such oneDNN spends as long on its call and
// on blocks of memory as on numbers, and MKL has no kernels for AMD's AVX-512: 64 x 208 by 208 x 208 in float32 takes
// 24 us, by oneDNN 37 and by MKL 53, on one core of an EPYC of family 26. With AVX2 alone: float32 of any size from 32
// rows on, where oneDNN has no way and MKL reaches 75 to 95 % of the speed: 4096 x 320 by 320 x 320 on one core of that
// EPYC, held to AVX2, takes 7.3 ms, by MKL 9.9.
bool is_small_product(const torch::Tensor& like, const ProductSizes& sizes);

// a [m, k], b [k, n], bias [n] or undefined -> a b + bias, [m, n]; of one dtype, without gradients. Sums are float32,
// and of bfloat16 rounded once. An element's bits depend on its row, its column and their length alone, neither on the
// other sizes nor on the number of threads.
torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias = {});
// `vectors`: of float32.
torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias, Vectors vectors);

// out[i] = a[i] b[i], and the same added to out where `adds`: float32 a [N, m, k] and b [N, k, n], each with rows or
// columns of neighbouring numbers, and out [N, m, n], contiguous. Worth it with AVX2.
void small_products(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds);
void small_products(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds,
                    Vectors vectors);

}  // namespace sdtune::model
