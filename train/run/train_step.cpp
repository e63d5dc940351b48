#include "train/run/train_step.h"

#include <utility>

#include "model/core/random.h"
#include "model/pipeline/prompt_encoding.h"
#include "train/objective/prior_preservation.h"
#include "train/optim/clip_grad.h"

namespace sdtune::train {

namespace {

// Photos first, then class pictures, as one batch for the UNet.
struct MicroBatch {
  std::vector<BatchSlot> slots;
  std::int64_t instances = 0;
};

std::vector<MicroBatch> micro_batches(Run& run, std::uint64_t step, std::int64_t round) {
  BatchPlan& plan = *run.data.plan;
  const std::vector<BatchSlot> photos = plan.photos(step, run.group->rank(), round);
  const std::vector<BatchSlot> class_images = plan.class_images(step, run.group->rank(), round);
  std::vector<MicroBatch> batches;
  for (std::size_t begin = 0; begin < photos.size(); begin += run.micro_batch) {
    const auto end = static_cast<std::ptrdiff_t>(begin + run.micro_batch);
    const auto first = static_cast<std::ptrdiff_t>(begin);
    MicroBatch batch{{photos.begin() + first, photos.begin() + end}, run.micro_batch};
    if (!class_images.empty()) {
      batch.slots.insert(batch.slots.end(), class_images.begin() + first, class_images.begin() + end);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::string caption(const Run& run, const BatchSlot& slot) {
  const DataOptions& options = run.config.data;
  if (slot.class_image) return options.class_prompt;
  const auto seed = static_cast<std::uint64_t>(run.config.run.seed);
  const model::DrawKey key{seed, model::Draw::kDropout, slot.step, slot.sample, slot.class_image};
  if (options.caption_dropout_rate > 0 && model::draw_uniform(key) < options.caption_dropout_rate) return "";
  return run.data.photos.photos[static_cast<std::size_t>(slot.picture)].caption;
}

std::vector<std::string> captions(const Run& run, const std::vector<BatchSlot>& slots) {
  std::vector<std::string> texts;
  for (const BatchSlot& slot : slots) texts.push_back(caption(run, slot));
  return texts;
}

DiffusionBatch load_batch(Run& run, const std::vector<BatchSlot>& slots) {
  const std::vector<std::string> texts = captions(run, slots);
  const model::PromptEmbeds embeds =
      run.trains_text() ? model::encode_prompts(run.bundle, run.data.texts->ids(texts)) : run.data.texts->states(texts);
  DiffusionBatch batch;
  batch.latents = run.data.latents->latents(slots).to(run.dtype);
  batch.context = embeds.context;
  if (run.bundle.is_xl()) {
    batch.added = {embeds.pooled, run.data.latents->time_ids(slots).to(run.device, /*non_blocking=*/true)};
  }
  for (const BatchSlot& slot : slots) batch.keys.push_back(slot.key());
  return batch;
}

// Adds this micro-batch's share to the gradients, and returns its share of the two losses: [2].
torch::Tensor accumulate(Run& run, const MicroBatch& micro) {
  const DiffusionBatch batch = load_batch(run, micro.slots);
  const DiffusionDraws draws = run.loss->draw(batch.keys, batch.latents.sizes(), run.device);
  const torch::Tensor losses = run.loss->sample_losses(run.bundle.unet, batch, draws);
  const LossShare share = share_of_loss(losses, micro.instances, run.data.plan->shape().effective());
  (share.total(run.config.objective.prior_loss_weight) * run.scaler->scale()).backward();
  return torch::stack({share.instance.detach(), share.prior.detach()});
}

}  // namespace

torch::Tensor train_step(Run& run, std::uint64_t step) {
  const std::int64_t rounds = run.data.plan->shape().rounds;
  run.buckets->begin_step(rounds * run.data.plan->shape().batch_size / run.micro_batch);
  torch::Tensor losses = torch::zeros({2}, torch::TensorOptions().device(run.device));
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const MicroBatch& micro : micro_batches(run, step, round)) {
      run.buckets->begin_round();
      losses += accumulate(run, micro);
    }
  }
  run.buckets->finish_step();
  run.group->all_reduce_sum(losses);
  const torch::Tensor scale = run.scaler->scale().clone();
  const torch::Tensor updates = run.optimizer->updates().clone();
  const ClippedGradient gradient = clip_gradient(run.optimizer->parameters(), scale, run.config.optim.max_grad_norm);
  run.optimizer->step(run.rates_by_update.index_select(0, updates.reshape({1})).squeeze(0), gradient.factor);
  run.scaler->update(gradient.norm);
  const std::vector<torch::Tensor> numbers = {losses[0], losses[1], gradient.norm, scale, updates};
  std::vector<torch::Tensor> wide;
  for (const torch::Tensor& number : numbers) wide.push_back(number.to(torch::kFloat64));
  return torch::stack(wide);
}

}  // namespace sdtune::train
