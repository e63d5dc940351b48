// Winograd's products with kernels that are transformed as the products read them, some columns at a time.
#pragma once

#include <torch/types.h>

#include "model/products/cpu_vectors.h"

namespace sdtune::model::winograd {

// Whether that is faster for so many tiles of a map of `dtype`, on this CPU: with AVX2 or AVX-512, where it is the
// kind's choice (convolutions_3x3_kernels in core/cpu_implementation.h), and with few tiles, where bringing transformed
// kernels to memory and back takes longer than the products.
bool takes_panels(int64_t tiles, torch::Dtype dtype = torch::kFloat32);
// The same for the gradient of the kernels.
bool takes_panels_for_gradient(int64_t tiles);

// sums [36, tiles, n] = transformed maps [36, tiles, m] times the transformed kernels of `weight`, float32 or
// bfloat16 and contiguous: [n, m, 3, 3], or where `flipped`, [m, n, 3, 3] with the kernels turned by 180 degrees. m and
// n are multiples of 16. The bits are those of our products (products/small_product.h) with transformed_weight
// (winograd_blocks.h), whatever the vectors.
void multiply_by_kernels(const torch::Tensor& maps, const torch::Tensor& weight, bool flipped,
                         const torch::Tensor& sums, Vectors vectors = vectors_of_this_cpu().value());

// gradient [out, in, 3, 3] of the kernels, of dy [36, tiles, out] (transformed_gradient) and x [36, tiles, in]
// (transformed_input).
void write_kernel_gradient(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& gradient,
                           Vectors vectors = vectors_of_this_cpu().value());

}  // namespace sdtune::model::winograd
