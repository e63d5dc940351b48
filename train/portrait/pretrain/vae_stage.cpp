#include "train/portrait/pretrain/vae_stage.h"

#include <torch/csrc/autograd/autograd.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "model/core/device_copy.h"
#include "model/core/image_tensor.h"
#include "model/core/random.h"
#include "train/portrait/pretrain/head_mask.h"
#include "train/portrait/pretrain/initial_weights.h"
#include "train/portrait/pretrain/mark_mask.h"
#include "train/portrait/pretrain/perceptual_loss.h"

namespace sdtune::train::pretrain {
namespace {

constexpr double kSquaredShare = 0.5;
constexpr double kEdgeShare = 0.5;
constexpr double kDivergenceShare = 5e-4;
// Adam's steps do not depend on a loss's scale, but the clipped norm of all gradients does: the discriminator's must
// not use it up.
constexpr double kDiscriminatorScale = 0.1;
constexpr double kSmallestNorm = 1e-12;
constexpr std::uint64_t kDiscriminatorWeights = 5;  // stream of initial weights, after those of the other stages

torch::Tensor mean_edge(const torch::Tensor& error) {
  const torch::Tensor across = error.slice(3, 1) - error.slice(3, 0, -1);
  const torch::Tensor down = error.slice(2, 1) - error.slice(2, 0, -1);
  return across.abs().mean() + down.abs().mean();
}

bool decodes(const std::string& parameter) {
  return parameter.starts_with("decoder.") || parameter.starts_with("post_quant_conv.");
}

// The gradient of a scalar by `leaf`, float32.
torch::Tensor gradient_of(const torch::Tensor& loss, const torch::Tensor& leaf) {
  return torch::autograd::grad({loss}, {leaf}).front().to(torch::kFloat32);
}

}  // namespace

torch::Tensor reconstruction_loss(const torch::Tensor& images, const torch::Tensor& decoded,
                                  const torch::Tensor& weights) {
  torch::Tensor error = (decoded - images).to(torch::kFloat32);
  if (!weights.defined())
    return error.abs().mean() + kSquaredShare * error.square().mean() + kEdgeShare * mean_edge(error);
  const torch::Tensor squared = (error.square() * weights).mean();
  error = error * weights;
  return error.abs().mean() + kSquaredShare * squared + kEdgeShare * mean_edge(error);
}

torch::Tensor divergence_loss(const model::Moments& moments) {
  const torch::Tensor mean = moments.mean.to(torch::kFloat32), logvar = moments.logvar.to(torch::kFloat32);
  return kDivergenceShare * (0.5 * (mean.square() + logvar.exp() - 1.0 - logvar).mean());
}

VaeStage::VaeStage(model::AutoencoderKL vae, ImagePool& pool, const VaeStageOptions& options, FeatureMaps maps,
                   model::AutoencoderKL fixed_encoder)
    : vae_(std::move(vae)),
      pool_(pool),
      order_(options.seed, options.images > 0 ? std::min(options.images, pool.count()) : pool.count(),
             ImagePool::kShard),
      options_(options),
      maps_(std::move(maps)),
      fixed_encoder_(std::move(fixed_encoder)),
      batches_([this](std::uint64_t step) { return prepare(step); },
               [this](std::uint64_t step) { return pool_.is_ready(indices(step)); }) {
  if (options_.adversarial_share == 0) return;
  discriminator_ = PatchDiscriminator();
  draw_initial_weights(*discriminator_, options_.seed, kDiscriminatorWeights);
  const torch::Tensor weight = vae_->parameters().front();
  discriminator_->to(weight.device());
  fixed_ = PatchDiscriminator();
  for (const torch::Tensor& fixed : fixed_->parameters()) fixed.set_requires_grad(false);
}

std::vector<NamedParameter> VaeStage::parameters() const {
  std::vector<NamedParameter> list;
  for (const auto& item : vae_->named_parameters()) {
    if (!fixed_encoder_ || decodes(item.key())) list.push_back({"vae." + item.key(), item.value()});
  }
  if (!discriminator_) return list;
  for (const auto& item : discriminator_->named_parameters()) {
    list.push_back({"discriminator." + item.key(), item.value()});
  }
  return list;
}

torch::Tensor VaeStage::image_loss(const torch::Tensor& images, const torch::Tensor& decoded,
                                   const torch::Tensor& weights) {
  torch::Tensor loss = reconstruction_loss(images, decoded, weights);
  if (options_.perceptual_weight == 0) return loss;
  std::vector<torch::Tensor> wanted;
  {
    const torch::NoGradGuard no_grad;
    wanted = maps_(images);
  }
  return loss + options_.perceptual_weight * perceptual_loss(maps_(decoded), wanted);
}

std::vector<std::int64_t> VaeStage::indices(std::uint64_t step) {
  return order_.images(step * static_cast<std::uint64_t>(options_.batch_size), options_.batch_size);
}

VaeStage::Batch VaeStage::prepare(std::uint64_t step) {
  const std::vector<std::int64_t> shown = indices(step);
  Batch batch;
  batch.pixels = pool_.pixels(shown);
  if (options_.head_weight == 1.0 && options_.mark_weight == 1.0) return batch;
  batch.head = head_mask(pool_, shown, pool_.size());
  if (options_.mark_weight != 1.0) batch.marks = mark_mask(pool_, shown, pool_.size());
  return batch;
}

// Mean 1 an image, so that these weights move effort and not the loss's scale.
torch::Tensor VaeStage::pixel_weights(const Batch& batch) const {
  if (!batch.head.defined()) return {};
  const torch::Device device = vae_->parameters().front().device();
  torch::Tensor weights = 1.0 + (options_.head_weight - 1.0) * model::copy_to_device(batch.head, device);
  if (batch.marks.defined()) {
    weights = weights + (options_.mark_weight - 1.0) * model::copy_to_device(batch.marks, device);
  }
  return weights / weights.mean({1, 2, 3}, /*keepdim=*/true);
}

model::Moments VaeStage::encode(const torch::Tensor& images) {
  if (!fixed_encoder_) return vae_->encode(images.to(vae_->parameters().front().scalar_type()));
  const torch::NoGradGuard no_grad;
  return fixed_encoder_->encode(images.to(fixed_encoder_->parameters().front().scalar_type()));
}

const PatchDiscriminator& VaeStage::fixed_discriminator() {
  const std::vector<torch::Tensor> now = discriminator_->parameters();
  std::vector<torch::Tensor> fixed = fixed_->parameters();
  for (std::size_t i = 0; i < now.size(); ++i) fixed[i].set_data(now[i].detach());
  return fixed_;
}

torch::Tensor VaeStage::adversarial_loss(const torch::Tensor& images, const torch::Tensor& decoded,
                                         const torch::Tensor& weights) {
  const torch::Tensor leaf = decoded.detach().set_requires_grad(true);
  const torch::Tensor own = image_loss(images, leaf, weights);
  PatchDiscriminator fixed = fixed_discriminator();
  const torch::Tensor other = generator_loss(fixed(leaf).to(torch::kFloat32));
  const torch::Tensor own_gradient = gradient_of(own, leaf), other_gradient = gradient_of(other, leaf);
  const torch::Tensor scale =
      options_.adversarial_share * own_gradient.norm() / other_gradient.norm().clamp_min(kSmallestNorm);
  // Its gradient by the decoded image is the sum of the two, its value what they add up to.
  const torch::Tensor product = (decoded.to(torch::kFloat32) * (own_gradient + scale * other_gradient)).sum();
  const torch::Tensor value = own.detach() + scale * other.detach();
  const torch::Tensor learned = discriminator_loss(discriminator_(images.to(leaf.scalar_type())).to(torch::kFloat32),
                                                   discriminator_(leaf.detach()).to(torch::kFloat32));
  return product + (value - product.detach()) + kDiscriminatorScale * learned;
}

torch::Tensor VaeStage::loss(std::uint64_t step) {
  const std::int64_t batch = options_.batch_size;
  const std::uint64_t first = step * static_cast<std::uint64_t>(batch);
  const torch::Device device = vae_->parameters().front().device();
  const Batch shown = batches_.take(step, device.is_cuda());
  const torch::Tensor images = model::normalized_pixels(model::copy_to_device(shown.pixels, device));
  const torch::Tensor weights = pixel_weights(shown);
  const model::Moments moments = encode(images);
  std::vector<model::SampleKey> keys;
  for (std::int64_t i = 0; i < batch; ++i) keys.push_back({step, first + static_cast<std::uint64_t>(i)});
  const torch::Tensor noise =
      model::draw_normal_batch(options_.seed, model::Draw::kLatent, keys, moments.mean.sizes().slice(1), device);
  const torch::Tensor latents = moments.mean + (0.5 * moments.logvar).exp() * noise.to(moments.mean.scalar_type());
  const torch::Tensor decoded = vae_->decode(latents);
  const bool has_opponent = discriminator_ && step >= static_cast<std::uint64_t>(options_.adversarial_start);
  const torch::Tensor loss =
      has_opponent ? adversarial_loss(images, decoded, weights) : image_loss(images, decoded, weights);
  return fixed_encoder_ ? loss : loss + divergence_loss(moments);
}

}  // namespace sdtune::train::pretrain
