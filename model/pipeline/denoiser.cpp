#include "model/pipeline/denoiser.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace sdtune::model {
namespace {

torch::Tensor rows_of(const torch::Tensor& all, int64_t first, int64_t count) {
  return all.defined() ? all.narrow(0, first, count) : all;
}

// No thread may be left without rows: of a large image, it helps its neighbours better.
int64_t number_of_shares(const torch::Tensor& context) {
  const int64_t threads = at::get_num_threads();
  return context.is_cpu() && context.size(0) >= threads && !at::in_parallel_region() ? threads : 1;
}

}  // namespace

Denoiser::Denoiser(UNet2DConditionModel unet, const torch::Tensor& context, const AddedConditions& added)
    : unet_(std::move(unet)), shares_(static_cast<std::size_t>(number_of_shares(context))) {
  const int64_t rows = context.size(0), shares = std::ssize(shares_);
  for (int64_t i = 0; i < shares; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.first = rows * i / shares;
    share.count = rows * (i + 1) / shares - share.first;
    share.context = rows_of(context, share.first, share.count);
    share.added = {rows_of(added.text_embeds, share.first, share.count),
                   rows_of(added.time_ids, share.first, share.count)};
  }
}

torch::Tensor Denoiser::denoise(Share& share, const torch::Tensor& sample, const torch::Tensor& timestep) {
  const at::NoGradGuard no_grad;  // each thread has its own
  return unet_->forward(rows_of(sample, share.first, share.count), timestep, share.context, share.added, &share.cache);
}

torch::Tensor Denoiser::operator()(const torch::Tensor& sample, const torch::Tensor& timestep) {
  if (shares_.size() == 1) return denoise(shares_.front(), sample, timestep);
  std::vector<torch::Tensor> predictions(shares_.size());
  at::parallel_for(0, std::ssize(shares_), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      predictions[i] = denoise(shares_[i], sample, timestep);
    }
  });
  return torch::cat(predictions);
}

}  // namespace sdtune::model
