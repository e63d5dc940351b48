// Matrix products that pick their library by the processor.
#pragma once

#include <torch/types.h>

#include <optional>

namespace sdtune::model {

// x [..., in], weight [out, in], bias [out] or undefined -> x W^T + b, [..., out]; differentiable. As torch::linear.
//
// LibTorch multiplies float32 matrices with MKL, which keeps its AVX-512 kernels for Intel's processors. On others that
// have AVX-512 oneDNN, which LibTorch carries for convolutions, takes half as long: 1486 against 663 us for 512 x 1152
// by 1152 x 128 on one core of an EPYC 9005. Small ones, and with AVX2 alone all of more than a few rows, are sdtune's
// own (small_product.h). Which it is follows from the kind of processor (core/cpu_implementation.h) and the shape
// alone. bfloat16 without AVX-512 is computed in float32 (float32_compute.h).
torch::Tensor apply_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {});

// a [m, k], b [k, n], bias [n] or undefined -> a b + bias, [m, n]; picks as apply_linear does, without gradients.
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias = {});

// x [..., n] -> [rows, n]; shares memory where it can.
torch::Tensor as_rows(const torch::Tensor& x);

// As functions with a backward pass take it; an undefined bias is none.
std::optional<torch::Tensor> bias_or_none(const torch::Tensor& bias);

// The same by oneDNN, float32 on the CPU, where can_multiply_by_onednn(): on processors with AVX-512, also Intel's.
bool can_multiply_by_onednn();
torch::Tensor onednn_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {});
torch::Tensor onednn_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias = {});

// out [N, m, n] = a b, and the same added to out where `adds`, for float32 batches of matrices a [N, m, k] and b
// [N, k, n], each dense or transposed; without gradients.
void multiply_batches(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds);

}  // namespace sdtune::model
