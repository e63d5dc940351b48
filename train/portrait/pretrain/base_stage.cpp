#include "train/portrait/pretrain/base_stage.h"

#include <algorithm>

#include "model/core/random.h"
#include "model/schedule/prediction.h"
#include "train/parameters/trainable_parameters.h"
#include "train/portrait/renderer/caption.h"
#include "train/portrait/scene/head_place.h"

namespace sdtune::train::pretrain {
namespace {

constexpr int kEpochShift = 40;     // caption seeds: the image below, the epoch above
constexpr float kHeadEdge = 0.25f;  // over which the weight of the head fades out, in its radii

// Every place keeps its own minimum, so weighing moves effort, not the optimum: eyes, beards and glasses are a few of
// the latent's places, and are learnt late from a plain mean.
ObjectiveOptions with_head_weight(const BaseStageOptions& options) {
  ObjectiveOptions objective = options.objective;
  if (options.head_weight == 1.0) return objective;
  objective.masked_loss = objective.normalize_masked_area_loss = true;
  objective.unmasked_weight = 1.0 / options.head_weight;
  return objective;
}

}  // namespace

BaseStage::BaseStage(model::ModelBundle& bundle, ImagePool& images, LatentPool& latents,
                     const BaseStageOptions& options)
    : bundle_(bundle),
      images_(images),
      latents_(latents),
      options_(options),
      order_(options.seed + 1, images.count(), ImagePool::kShard),
      loss_(model::NoiseSchedule::from_config(bundle.scheduler_config).to(bundle.device()),
            model::prediction_type_of(bundle.scheduler_config), with_head_weight(options), options.seed) {}

std::vector<NamedParameter> BaseStage::parameters() const {
  std::vector<NamedParameter> list;
  for (const ModuleParameter& parameter : trainable_parameters(bundle_, /*train_text_encoder=*/true)) {
    list.push_back({parameter.name, parameter.weight});
  }
  return list;
}

std::string BaseStage::caption(std::int64_t image, std::uint64_t sample) const {
  const model::DrawKey key{options_.seed, model::Draw::kDropout, 0, sample};
  if (model::draw_uniform(key) < options_.caption_dropout) return {};
  const portrait::Portrait shown = images_.portrait(image);
  const std::uint64_t seed = static_cast<std::uint64_t>(image) + (order_.epoch(sample) << kEpochShift);
  return portrait::caption(shown.who, shown.now, seed);
}

torch::Tensor BaseStage::latents(const std::vector<std::int64_t>& indices, const std::vector<model::SampleKey>& keys) {
  const torch::Device device = bundle_.device();
  const LatentPool::Posterior posterior = latents_.posterior(indices);
  const torch::Tensor noise =
      model::draw_normal_batch(options_.seed, model::Draw::kLatent, keys, posterior.mean.sizes().slice(1), device);
  const torch::Tensor sample = posterior.mean.to(device) + posterior.deviation.to(device) * noise;
  return (sample * bundle_.vae->config().scaling_factor).to(bundle_.dtype());
}

torch::Tensor BaseStage::heads(const std::vector<std::int64_t>& indices, std::int64_t side) const {
  torch::Tensor weights = torch::empty({static_cast<std::int64_t>(indices.size()), 1, side, side});
  float* at = weights.data_ptr<float>();
  const float step = 2.0f / static_cast<float>(side);
  for (const std::int64_t index : indices) {
    const portrait::HeadPlace head = portrait::head_place(images_.portrait(index).now);
    for (std::int64_t i = 0; i < side * side; ++i) {
      const float x = (static_cast<float>(i % side) + 0.5f) * step - 1.0f;
      const float y = 1.0f - (static_cast<float>(i / side) + 0.5f) * step;
      *at++ = std::clamp((1.0f + kHeadEdge - head.distance(x, y)) / kHeadEdge, 0.0f, 1.0f);
    }
  }
  return weights;
}

torch::Tensor BaseStage::states(const std::vector<std::int64_t>& indices, std::uint64_t first) {
  std::vector<torch::Tensor> rows;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    rows.push_back(torch::tensor(bundle_.tokenizer(caption(indices[i], first + i)).ids));
  }
  return bundle_.text_encoder->forward(torch::stack(rows).to(bundle_.device())).last_hidden_state;
}

torch::Tensor BaseStage::loss(std::uint64_t step) {
  const std::uint64_t first = step * static_cast<std::uint64_t>(options_.batch_size);
  const std::vector<std::int64_t> indices = order_.images(first, options_.batch_size);
  DiffusionBatch batch;
  for (std::size_t i = 0; i < indices.size(); ++i) batch.keys.push_back({step, first + i});
  batch.latents = latents(indices, batch.keys);
  batch.context = states(indices, first);
  if (options_.head_weight != 1.0) batch.mask = heads(indices, batch.latents.size(3)).to(bundle_.device());
  const DiffusionDraws draws = loss_.draw(batch.keys, batch.latents.sizes(), bundle_.device());
  return loss_.sample_losses(bundle_.unet, batch, draws).mean();
}

}  // namespace sdtune::train::pretrain
