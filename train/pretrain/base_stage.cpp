#include "train/pretrain/base_stage.h"

#include "model/core/random.h"
#include "model/schedule/prediction.h"
#include "train/portrait/caption.h"
#include "train/run/trained_modules.h"

namespace sdtune::train::pretrain {
namespace {

constexpr int kEpochShift = 40;  // caption seeds: the picture below, the epoch above

}  // namespace

BaseStage::BaseStage(model::ModelBundle& bundle, PicturePool& pictures, LatentPool& latents,
                     const BaseStageOptions& options)
    : bundle_(bundle),
      pictures_(pictures),
      latents_(latents),
      options_(options),
      order_(options.seed + 1, pictures.count(), PicturePool::kShard),
      loss_(model::NoiseSchedule::from_config(bundle.scheduler_config).to(bundle.device()),
            model::prediction_type_of(bundle.scheduler_config), options.objective, options.seed) {}

std::vector<NamedParameter> BaseStage::parameters() const {
  std::vector<NamedParameter> list;
  for (const ModuleParameter& parameter : trained_parameters(bundle_, /*train_text_encoder=*/true)) {
    list.push_back({parameter.name, parameter.weight});
  }
  return list;
}

std::string BaseStage::caption(std::int64_t picture, std::uint64_t sample) const {
  const model::DrawKey key{options_.seed, model::Draw::kDropout, 0, sample};
  if (model::draw_uniform(key) < options_.caption_dropout) return {};
  const portrait::Portrait shown = pictures_.portrait(picture);
  const std::uint64_t seed = static_cast<std::uint64_t>(picture) + (order_.epoch(sample) << kEpochShift);
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

torch::Tensor BaseStage::states(const std::vector<std::int64_t>& indices, std::uint64_t first) {
  std::vector<torch::Tensor> rows;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    rows.push_back(torch::tensor(bundle_.tokenizer(caption(indices[i], first + i)).ids));
  }
  return bundle_.text_encoder->forward(torch::stack(rows).to(bundle_.device())).last_hidden_state;
}

torch::Tensor BaseStage::loss(std::uint64_t step) {
  const std::uint64_t first = step * static_cast<std::uint64_t>(options_.batch_size);
  const std::vector<std::int64_t> indices = order_.pictures(first, options_.batch_size);
  DiffusionBatch batch;
  for (std::size_t i = 0; i < indices.size(); ++i) batch.keys.push_back({step, first + i});
  batch.latents = latents(indices, batch.keys);
  batch.context = states(indices, first);
  const DiffusionDraws draws = loss_.draw(batch.keys, batch.latents.sizes(), bundle_.device());
  return loss_.sample_losses(bundle_.unet, batch, draws).mean();
}

}  // namespace sdtune::train::pretrain
