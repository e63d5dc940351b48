#include "train/portrait/pretrain/vae_stage.h"

#include "model/core/random.h"

namespace sdtune::train::pretrain {
namespace {

constexpr double kSquaredShare = 0.5;
constexpr double kEdgeShare = 0.5;
constexpr double kDivergenceShare = 5e-4;

torch::Tensor mean_edge(const torch::Tensor& error) {
  const torch::Tensor across = error.slice(3, 1) - error.slice(3, 0, -1);
  const torch::Tensor down = error.slice(2, 1) - error.slice(2, 0, -1);
  return across.abs().mean() + down.abs().mean();
}

}  // namespace

torch::Tensor vae_loss(const torch::Tensor& images, const torch::Tensor& decoded, const model::Moments& moments) {
  const torch::Tensor error = (decoded - images).to(torch::kFloat32);
  const torch::Tensor mean = moments.mean.to(torch::kFloat32), logvar = moments.logvar.to(torch::kFloat32);
  const torch::Tensor divergence = 0.5 * (mean.square() + logvar.exp() - 1.0 - logvar).mean();
  return error.abs().mean() + kSquaredShare * error.square().mean() + kEdgeShare * mean_edge(error) +
         kDivergenceShare * divergence;
}

VaeStage::VaeStage(model::AutoencoderKL vae, ImagePool& pool, std::uint64_t seed, std::int64_t batch_size)
    : vae_(std::move(vae)),
      pool_(pool),
      order_(seed, pool.count(), ImagePool::kShard),
      seed_(seed),
      batch_size_(batch_size) {}

std::vector<NamedParameter> VaeStage::parameters() const {
  std::vector<NamedParameter> list;
  for (const auto& item : vae_->named_parameters()) list.push_back({"vae." + item.key(), item.value()});
  return list;
}

torch::Tensor VaeStage::loss(std::uint64_t step) {
  const std::uint64_t first = step * static_cast<std::uint64_t>(batch_size_);
  const torch::Tensor weight = vae_->parameters().front();
  const torch::Tensor images = pool_.images(order_.images(first, batch_size_)).to(weight.device());
  const model::Moments moments = vae_->encode(images.to(weight.scalar_type()));
  std::vector<model::SampleKey> keys;
  for (std::int64_t i = 0; i < batch_size_; ++i) keys.push_back({step, first + static_cast<std::uint64_t>(i)});
  const torch::Tensor noise =
      model::draw_normal_batch(seed_, model::Draw::kLatent, keys, moments.mean.sizes().slice(1), weight.device());
  const torch::Tensor latents = moments.mean + (0.5 * moments.logvar).exp() * noise.to(moments.mean.scalar_type());
  return vae_loss(images, vae_->decode(latents), moments);
}

}  // namespace sdtune::train::pretrain
