// Winograd's products with kernels that are transformed as the products read them, some columns at a time.
#pragma once

#include <torch/types.h>

namespace sdtune::model::winograd {

// Whether that is faster for so many tiles, on this CPU: with AVX2, where our own products are the fastest and the
// kind's choice (small_products in core/cpu_implementation.h), and with few tiles, where bringing transformed kernels
// to memory and back takes longer than the products.
bool takes_panels(int64_t tiles);
// The same for the gradient of the kernels.
bool takes_panels_for_gradient(int64_t tiles);

// sums [36, tiles, n] = transformed maps [36, tiles, m] times the transformed kernels of `weight`, float32 and
// contiguous: [n, m, 3, 3], or where `flipped`, [m, n, 3, 3] with the kernels turned by 180 degrees. m and n are
// multiples of 16. The bits are those of products with transformed_weight (winograd_blocks.h).
void multiply_by_kernels(const torch::Tensor& maps, const torch::Tensor& weight, bool flipped,
                         const torch::Tensor& sums);

// gradient [out, in, 3, 3] of the kernels, of dy [36, tiles, out] (transformed_gradient) and x [36, tiles, in]
// (transformed_input).
void write_kernel_gradient(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& gradient);

}  // namespace sdtune::model::winograd
