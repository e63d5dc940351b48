#include "model/pipeline/denoiser.h"

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
  return unet_->forward(rows_of(sample, chunk.rows), timestep, chunk.context, chunk.added, &chunk.cache);
}

torch::Tensor Denoiser::operator()(const torch::Tensor& sample, const torch::Tensor& timestep) {
  const at::NoGradGuard no_grad;
  if (chunks_.size() == 1) return denoise(chunks_.front(), sample, timestep);
  std::vector<torch::Tensor> predictions(chunks_.size());
  run_chunks(std::ssize(chunks_), [&](int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    predictions[i] = denoise(chunks_[i], sample, timestep);
  });
  return torch::cat(predictions);
}

torch::Tensor predict_once(UNet2DConditionModelImpl& unet, const torch::Tensor& sample, const torch::Tensor& timestep,
                           const torch::Tensor& context, const AddedConditions& added) {
  const at::NoGradGuard no_grad;
  const int64_t rows = sample.dim() == 0 ? 0 : sample.size(0);
  const auto has_rows = [&](const torch::Tensor& of) { return of.dim() > 0 && of.size(0) == rows; };
  const auto may_have = [&](const torch::Tensor& of) { return !of.defined() || has_rows(of); };
  const bool is_whole = has_rows(context) && may_have(added.text_embeds) && may_have(added.time_ids);
  const int64_t chunks = is_whole ? chunk_count(rows, sample.device()) : 1;
  if (chunks == 1) return unet.forward(sample, timestep, context, added);
  std::vector<torch::Tensor> predictions(static_cast<std::size_t>(chunks));
  run_chunks(chunks, [&](int64_t index) {
    const ChunkRange range = chunk_range(rows, chunks, index);
    const AddedConditions own{rows_of(added.text_embeds, range), rows_of(added.time_ids, range)};
    predictions[static_cast<std::size_t>(index)] = unet.forward(
        rows_of(sample, range), has_rows(timestep) ? rows_of(timestep, range) : timestep, rows_of(context, range), own);
  });
  return torch::cat(predictions);
}

}  // namespace sdtune::model
