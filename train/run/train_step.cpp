#include "train/run/train_step.h"

#include <ATen/record_function.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "model/core/chunk_threads.h"
#include "model/core/out_of_memory.h"
#include "train/objective/prior_preservation.h"
#include "train/optim/clip_grad.h"
#include "train/parameters/trainable_parameters.h"
#include "train/run/micro_batch.h"
#include "train/run/sample_losses.h"
#include "train/run/step_graphs.h"

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

MicroBatch chunk_of(const MicroBatch& micro, const model::ChunkRange& range) {
  const auto first = micro.slots.begin();
  return {{first + range.begin, first + range.end},
          std::clamp<std::int64_t>(micro.instances - range.begin, 0, range.size())};
}

// Adds the samples' share to the gradients, and returns their share of the two losses: [2].
torch::Tensor compute_chunk(Run& run, const MicroInputs& samples) {
  const torch::Tensor losses = sample_losses(run, samples);
  RECORD_USER_SCOPE("backward");
  if (run.config.run.gradient_checkpointing) run.buckets->note_forward_passes(std::ssize(samples.parts));
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
    const MicroBatch chunk = chunk_of(micro, range);
    losses[static_cast<std::size_t>(index)] = compute_chunk(run, gather_inputs(run, chunk.slots, chunk.instances));
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

// The two losses: [2], and the gradients into the buckets.
torch::Tensor compute_eagerly(Run& run, std::uint64_t step) {
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
  return losses;
}

// The same by the graph of the step's shape: all that it reads is there before it begins.
torch::Tensor compute_by_graph(Run& run, std::uint64_t step) {
  std::vector<MicroInputs> inputs;
  for (std::int64_t round = 0; round < run.data.plan->shape().rounds; ++round) {
    for (const MicroBatch& micro : micro_batches(run, step, round)) {
      if (run.before_micro_batch) run.before_micro_batch(step, micro.instances);
      inputs.push_back(gather_inputs(run, micro.slots, micro.instances));
    }
  }
  const torch::Tensor losses = run.graphs->compute(std::move(inputs));
  for (Problem& warning : run.graphs->warnings()) run.warnings.push_back(std::move(warning));
  return losses;
}

// The step's gradients into the buckets, summed over the ranks; returns the two losses, and with several ranks how
// long they took (StepTimes): [2] or [2 + 2 x ranks].
torch::Tensor compute_gradients(Run& run, std::uint64_t step) {
  const torch::Tensor losses = run.graphs ? compute_by_graph(run, step) : compute_eagerly(run, step);
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
  if (run.graphs) run.graphs->clear();
  if (run.device.is_cuda()) c10::getDeviceAllocator(c10::kCUDA)->emptyCache();
}

torch::Tensor compute_gradients_that_fit(Run& run, std::uint64_t step) {
  while (true) {
    try {
      return compute_gradients(run, step);
    } catch (const std::exception& error) {
      if (!model::is_out_of_memory(error) || !can_shrink(run)) throw;
    }
    shrink_micro_batch(run, step);
  }
}

}  // namespace

torch::Tensor compute_gradients(Run& run, const std::vector<MicroInputs>& inputs) {
  run.buckets->begin_step(std::ssize(inputs));
  torch::Tensor losses = torch::zeros({2}, torch::TensorOptions().device(run.device));
  for (const MicroInputs& micro : inputs) {
    run.buckets->begin_round();
    run.dropout->begin(1);
    losses += compute_chunk(run, micro);
    run.dropout->clear();
  }
  run.buckets->finish_step();
  return losses;
}

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
