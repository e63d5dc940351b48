// The launchers that table.cu puts into the table; model/core/cuda_table.h says what each does.
#pragma once

#include "model/core/cuda_table.h"

namespace sdtune::model {

void launch_philox_normal(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                          const CudaStream& stream);
std::int64_t group_norm_workspace(const CudaGroupNorm& shape, CudaType type);
void launch_group_norm_forward(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                               const CudaStream& stream);
void launch_group_norm_backward(const CudaGroupNormBackward& tensors, const CudaGroupNorm& shape, CudaType type,
                                const CudaStream& stream);
void launch_geglu_forward(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type,
                          const CudaStream& stream);
void launch_geglu_backward(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                           CudaType type, const CudaStream& stream);

}  // namespace sdtune::model
