#include "train/portrait/pretrain/base_stage.h"

#include "model/core/device_copy.h"
#include "model/core/random.h"
#include "model/schedule/prediction.h"
#include "train/parameters/trainable_parameters.h"
#include "train/portrait/pretrain/head_mask.h"
#include "train/portrait/renderer/caption.h"

namespace sdtune::train::pretrain {
namespace {

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
            model::prediction_type_of(bundle.scheduler_config), with_head_weight(options), options.seed),
      batches_([this](std::uint64_t step) { return prepare(step); },
               [this](std::uint64_t step) { return images_.is_ready(indices(step)); }) {}

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
  return portrait::caption(shown.who, shown.now, order_.caption_seed(image, sample));
}

std::vector<std::int64_t> BaseStage::indices(std::uint64_t step) {
  return order_.images(step * static_cast<std::uint64_t>(options_.batch_size), options_.batch_size);
}

BaseStage::Batch BaseStage::prepare(std::uint64_t step) {
  const std::uint64_t first = step * static_cast<std::uint64_t>(options_.batch_size);
  const std::vector<std::int64_t> shown = indices(step);
  Batch batch;
  batch.posterior = latents_.posterior(shown);
  std::vector<torch::Tensor> rows;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    rows.push_back(torch::tensor(bundle_.tokenizer(caption(shown[i], first + i)).ids));
  }
  batch.ids = torch::stack(rows);
  if (options_.head_weight != 1.0) batch.mask = head_mask(images_, shown, batch.posterior.mean.size(3));
  return batch;
}

torch::Tensor BaseStage::latents(const LatentPool::Posterior& posterior, const std::vector<model::SampleKey>& keys) {
  const torch::Device device = bundle_.device();
  const torch::Tensor noise =
      model::draw_normal_batch(options_.seed, model::Draw::kLatent, keys, posterior.mean.sizes().slice(1), device);
  const torch::Tensor deviation = model::copy_to_device(posterior.deviation, device);
  const torch::Tensor sample = model::copy_to_device(posterior.mean, device) + deviation * noise;
  return (sample * bundle_.vae->config().scaling_factor).to(bundle_.dtype());
}

torch::Tensor BaseStage::loss(std::uint64_t step) {
  const torch::Device device = bundle_.device();
  const Batch shown = batches_.take(step, device.is_cuda());
  DiffusionBatch batch;
  const std::uint64_t first = step * static_cast<std::uint64_t>(options_.batch_size);
  for (std::int64_t i = 0; i < options_.batch_size; ++i)
    batch.keys.push_back({step, first + static_cast<std::uint64_t>(i)});
  batch.latents = latents(shown.posterior, batch.keys);
  batch.context = bundle_.text_encoder->forward(model::copy_to_device(shown.ids, device)).last_hidden_state;
  if (shown.mask.defined()) batch.mask = model::copy_to_device(shown.mask, device);
  const DiffusionDraws draws = loss_.draw(batch.keys, batch.latents.sizes(), device);
  return loss_.sample_losses(bundle_.unet, batch, draws).mean();
}

}  // namespace sdtune::train::pretrain
