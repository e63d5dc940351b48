// The launchers that table.cu puts into the table; train/optim/optimizer_table.h says what each does.
#pragma once

#include "train/optim/optimizer_table.h"

namespace sdtune::train {

void launch_adamw_step(const double* rates, std::int64_t groups, const float* gradient_factor, std::int64_t* updates,
                       const CudaAdamWOptions& options, CudaAdamWStep* steps, const model::CudaStream& stream);
void launch_adamw(const CudaParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                  model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                  const model::CudaStream& stream);
void launch_adamw_8bit(const CudaCodedParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                       model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                       const CudaCodeBook* book, const model::CudaStream& stream);
void launch_gradient_squares(const CudaGradient* gradients, const CudaChunk* chunks, std::int64_t chunk_count,
                             model::CudaType gradient_type, double* sums, const model::CudaStream& stream);
void launch_gradient_norm(const double* sums, std::int64_t count, float* norm, const model::CudaStream& stream);

}  // namespace sdtune::train
