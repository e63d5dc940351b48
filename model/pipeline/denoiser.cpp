#include "model/pipeline/denoiser.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "model/core/chunk_threads.h"

namespace sdtune::model {
namespace {

torch::Tensor rows_of(const torch::Tensor& all, const ChunkRange& rows) {
  return all.defined() ? all.slice(0, rows.begin, rows.end) : all;
}

}  // namespace

Denoiser::Denoiser(UNet2DConditionModel unet, const torch::Tensor& context, const AddedConditions& added)
    : unet_(std::move(unet)), chunks_(static_cast<std::size_t>(chunk_count(context.size(0), context.device()))) {
  for (int64_t i = 0; i < std::ssize(chunks_); ++i) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    chunk.rows = chunk_range(context.size(0), std::ssize(chunks_), i);
    chunk.context = rows_of(context, chunk.rows);
    chunk.added = {rows_of(added.text_embeds, chunk.rows), rows_of(added.time_ids, chunk.rows)};
  }
}

torch::Tensor Denoiser::denoise(Chunk& chunk, const torch::Tensor& sample, const torch::Tensor& timestep) {
  const at::NoGradGuard no_grad;  // each thread has its own, as the scope
  const PackedWeightsScope packed(packed_.get());
  return unet_->forward(rows_of(sample, chunk.rows), timestep, chunk.context, chunk.added, &chunk.cache);
}

// Without a backward pass OpenMP's own threads will do, which begin sooner than those of run_chunks: an image of the
// bundled base takes a tenth less.
torch::Tensor Denoiser::operator()(const torch::Tensor& sample, const torch::Tensor& timestep) {
  if (chunks_.size() == 1) return denoise(chunks_.front(), sample, timestep);
  std::vector<torch::Tensor> predictions(chunks_.size());
  at::parallel_for(0, std::ssize(chunks_), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      predictions[i] = denoise(chunks_[i], sample, timestep);
    }
  });
  return torch::cat(predictions);
}

}  // namespace sdtune::model
