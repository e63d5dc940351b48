// The launchers that cuda_table.cu puts into the table; model/core/cuda_table.h says what each does.
#pragma once

#include "model/core/cuda_table.h"

namespace sdtune::model {

void launch_philox_normal(float* out, std::int64_t rows, std::int64_t row_size, const std::uint32_t* words,
                          void* stream);
void launch_adamw(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                  CudaType weight_type, CudaType gradient_type, const CudaAdamWConstants& constants,
                  const CudaAdamWStep* step, void* stream);
void launch_sum_of_squares(const CudaParameter* parameters, std::int64_t parameter_count, std::int64_t largest,
                           CudaType gradient_type, double* sum, std::int32_t* found_inf, void* stream);
void launch_group_norm_forward(const void* x, const void* weight, const void* bias, void* y, float* mean, float* rstd,
                               const CudaGroupNorm& shape, CudaType type, void* stream);
void launch_group_norm_backward(const void* grad_y, const void* x, const void* weight, const void* bias,
                                const float* mean, const float* rstd, void* grad_x, float* grad_weight,
                                float* grad_bias, const CudaGroupNorm& shape, CudaType type, void* stream);
void launch_geglu_forward(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type, void* stream);
void launch_geglu_backward(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                           CudaType type, void* stream);

}  // namespace sdtune::model
