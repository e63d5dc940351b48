#include "train/run/train_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <utility>

#include "model/core/chunk_threads.h"
#include "model/core/device_copy.h"
#include "model/core/out_of_memory.h"
#include "model/core/random.h"
#include "model/pipeline/prompt_encoding.h"
#include "train/objective/prior_preservation.h"
#include "train/optim/clip_grad.h"
#include "train/parameters/trainable_parameters.h"
#include "train/run/micro_batch.h"

namespace sdtune::train {

namespace {

// Photos first, then class images, as one batch for the UNet.
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

std::vector<model::SampleKey> step_keys(const std::vector<BatchSlot>& slots) {
  std::vector<model::SampleKey> keys;
  for (const BatchSlot& slot : slots) keys.push_back(slot.key());
  return keys;
}

std::string caption(const Run& run, const BatchSlot& slot) {
  const DataOptions& options = run.config.data;
  if (slot.class_image) return run.data.class_images[static_cast<std::size_t>(slot.image)].prompt;
  const auto seed = static_cast<std::uint64_t>(run.config.run.seed);
  const model::DrawKey key{seed, model::Draw::kDropout, slot.step, slot.sample, slot.class_image};
  if (options.caption_dropout_rate > 0 && model::draw_uniform(key) < options.caption_dropout_rate) return "";
  return run.data.photos.photos[static_cast<std::size_t>(slot.image)].caption;
}

std::vector<std::string> captions(const Run& run, const std::vector<BatchSlot>& slots) {
  std::vector<std::string> texts;
  for (const BatchSlot& slot : slots) texts.push_back(caption(run, slot));
  return texts;
}

// Whether a caption that several samples share may be encoded once: not where the text encoder's LoRA drops by sample,
// nor on a GPU, which would add its gradients up in an order of its own.
bool encodes_each_once(const Run& run) {
  return run.device.is_cpu() && !(run.is_lora() && run.config.lora.lora_dropout > 0);
}

torch::Tensor rows_of(const torch::Tensor& all, const torch::Tensor& rows) {
  return all.defined() ? all.index_select(0, rows) : all;
}

// With gradients to the text encoders in the steps that train them.
model::PromptEmbeds prompt_embeds(Run& run, const std::vector<BatchSlot>& slots) {
  const std::vector<std::string> texts = captions(run, slots);
  if (!run.trains_text()) return run.data.texts->states(texts);
  const torch::AutoGradMode with_gradients(run.trains_text_at(slots.front().step));
  if (!encodes_each_once(run)) return model::encode_prompts(run.bundle, run.data.texts->ids(texts));
  std::vector<std::string> distinct;
  torch::Tensor rows = torch::empty({std::ssize(texts)}, torch::kInt64);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto found = std::find(distinct.begin(), distinct.end(), texts[i]);
    rows.data_ptr<std::int64_t>()[i] = found - distinct.begin();
    if (found == distinct.end()) distinct.push_back(texts[i]);
  }
  const model::PromptEmbeds each = model::encode_prompts(run.bundle, run.data.texts->ids(distinct));
  if (distinct.size() == texts.size()) return each;
  return {rows_of(each.context, rows), rows_of(each.pooled, rows)};
}

DiffusionBatch load_batch(Run& run, const std::vector<BatchSlot>& slots) {
  RECORD_USER_SCOPE("load batch");
  const model::PromptEmbeds embeds = prompt_embeds(run, slots);
  DiffusionBatch batch;
  batch.latents = run.data.latents->latents(slots).to(run.dtype);
  batch.context = embeds.context;
  if (run.bundle.is_xl()) {
    batch.added = {embeds.pooled, model::copy_to_device(run.data.latents->time_ids(slots), run.device)};
  }
  if (run.data.masks) batch.mask = model::copy_to_device(run.data.masks->of(slots), run.device);
  batch.keys = step_keys(slots);
  return batch;
}

// One forward: the loss of each of some images of one size.
torch::Tensor sample_losses(Run& run, const std::vector<BatchSlot>& slots) {
  run.dropout->set(step_keys(slots));  // text encoders may drop, too
  const DiffusionBatch batch = load_batch(run, slots);
  RECORD_USER_SCOPE("forward");
  const DiffusionDraws draws = run.loss->draw(batch.keys, batch.latents.sizes(), run.device);
  return run.loss->sample_losses(run.bundle.unet, batch, draws);
}

// The photos of a step are of one size and so are its class images; buckets may make these two different ones.
torch::Tensor sample_losses(Run& run, const MicroBatch& micro) {
  const LatentCache& latents = *run.data.latents;
  if (latents.size_of(micro.slots.front()) == latents.size_of(micro.slots.back())) {
    return sample_losses(run, micro.slots);
  }
  const auto middle = micro.slots.begin() + static_cast<std::ptrdiff_t>(micro.instances);
  const std::vector<BatchSlot> photos(micro.slots.begin(), middle), class_images(middle, micro.slots.end());
  return torch::cat({sample_losses(run, photos), sample_losses(run, class_images)});
}

MicroBatch chunk_of(const MicroBatch& micro, const model::ChunkRange& range) {
  const auto first = micro.slots.begin();
  return {{first + range.begin, first + range.end},
          std::clamp<std::int64_t>(micro.instances - range.begin, 0, range.size())};
}

// Adds the samples' share to the gradients, and returns their share of the two losses: [2].
torch::Tensor compute_chunk(Run& run, const MicroBatch& samples) {
  const torch::Tensor losses = sample_losses(run, samples);
  RECORD_USER_SCOPE("backward");
  const LossShare share = share_of_loss(losses, samples.instances, run.data.plan->shape().effective());
  (share.total(run.config.objective.prior_loss_weight) * run.scaler->scale()).backward();
  return torch::stack({share.instance.detach(), share.prior.detach()});
}

// Adds this micro-batch's share to the gradients, and returns its share of the two losses: [2].
torch::Tensor accumulate(Run& run, const MicroBatch& micro) {
  if (run.before_micro_batch) run.before_micro_batch(micro.slots.front().step, micro.instances);
  const std::int64_t chunks = run.uses_chunks ? model::chunk_count(std::ssize(micro.slots), run.device) : 1;
  run.buckets->begin_round(chunks);
  run.dropout->begin(chunks);
  std::vector<torch::Tensor> losses(static_cast<std::size_t>(chunks));
  model::run_chunks(chunks, [&](std::int64_t index) {
    const model::ChunkRange range = model::chunk_range(std::ssize(micro.slots), chunks, index);
    losses[static_cast<std::size_t>(index)] = compute_chunk(run, chunk_of(micro, range));
  });
  run.dropout->clear();  // nothing is dropped from validation images
  return chunks == 1 ? losses.front() : torch::stack(losses).sum(0);
}

// Of the step's update; text encoders that are no longer trained have none.
torch::Tensor rates_of(const Run& run, std::uint64_t step, const torch::Tensor& updates) {
  torch::Tensor rates = run.rates_by_update.index_select(0, updates.reshape({1})).squeeze(0);
  if (run.trains_text() && !run.trains_text_at(step)) rates.select(0, kTextGroup).zero_();
  return rates;
}

// The step's gradients into the buckets, summed over the ranks; returns the two losses, and with several ranks how
// long they took (StepTimes): [2] or [2 + 2 x ranks].
torch::Tensor compute_gradients(Run& run, std::uint64_t step) {
  const std::int64_t rounds = run.data.plan->shape().rounds;
  run.buckets->begin_step(rounds * run.data.plan->shape().batch_size / run.micro_batch);
  torch::Tensor losses = torch::zeros({2}, torch::TensorOptions().device(run.device));
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const MicroBatch& micro : micro_batches(run, step, round)) {
      losses += accumulate(run, micro);
    }
  }
  RECORD_USER_SCOPE("sum over ranks");
  run.buckets->finish_step();
  return run.stops->sum(run.group->world_size() == 1 ? losses : torch::cat({losses, run.times->own()}));
}

// Ranks would have to agree within a step, so only a run of one rank continues.
bool can_shrink(const Run& run) {
  return run.config.run.micro_batch == "auto" && run.group->world_size() == 1 && run.micro_batch > 1;
}

void shrink_micro_batch(Run& run, std::uint64_t step) {
  const std::int64_t before = run.micro_batch;
  run.micro_batch = next_smaller_micro_batch(run.data.plan->shape().batch_size, before);
  run.warnings.push_back({"micro_batch",
                          "memory ran out in step " + std::to_string(step + 1) + " with " + std::to_string(before) +
                              " photos at once; the step is done again with " + std::to_string(run.micro_batch),
                          ""});
  if (run.device.is_cuda()) c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
}

torch::Tensor compute_gradients_that_fit(Run& run, std::uint64_t step) {
  while (true) {
    try {
      return compute_gradients(run, step);
    } catch (const c10::Error& error) {
      if (!model::is_out_of_memory(error) || !can_shrink(run)) throw;
    }
    shrink_micro_batch(run, step);
  }
}

}  // namespace

void probe_gradients(Run& run) {
  const auto first = [&] {
    accumulate(run, micro_batches(run, static_cast<std::uint64_t>(run.first_step), 0).front());
  };
  if (run.buckets->frees_gradients()) return run.buckets->probe(first);
  run.buckets->begin_step(2);  // the last of the two never comes, so nothing is sent
  first();
}

torch::Tensor train_step(Run& run, std::uint64_t step) {
  run.group->begin_step(static_cast<std::int64_t>(step) + 1);
  run.times->begin_step();
  const torch::Tensor sums = compute_gradients_that_fit(run, step);
  RECORD_USER_SCOPE("update");
  const torch::Tensor scale = run.scaler->scale().clone();
  const torch::Tensor updates = run.optimizer->updates().clone();
  const ClippedGradient gradient =
      clip_gradient(run.shards->parameters(), scale, run.config.optim.max_grad_norm, run.shards->optimizer_shard());
  run.gradient_sums = gradient.sums;
  run.group->check_before_update();
  run.optimizer->step(rates_of(run, step, updates), gradient.factor);
  {
    RECORD_USER_SCOPE("share weights");
    run.shards->share_weights();
  }
  run.scaler->update(gradient.norm);
  const std::vector<torch::Tensor> numbers = {sums[0], sums[1], gradient.norm, scale, updates};
  std::vector<torch::Tensor> wide;
  for (const torch::Tensor& number : numbers) wide.push_back(number.to(torch::kFloat64));
  const torch::Tensor stacked = torch::stack(wide);
  run.times->end_step();
  if (sums.numel() == 2) return stacked;
  return torch::cat({stacked, sums.slice(0, 2).to(torch::kFloat64)});
}

}  // namespace sdtune::train
