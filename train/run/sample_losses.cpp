#include "train/run/sample_losses.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <vector>

#include "train/objective/direct_consistency.h"

namespace sdtune::train {

namespace {

torch::Tensor rows_of(const torch::Tensor& all, const torch::Tensor& rows) {
  return all.defined() ? all.index_select(0, rows) : all;
}

// With gradients to the text encoders in the steps that train them.
model::PromptEmbeds prompt_embeds(Run& run, const SampleInputs& inputs, bool trains_text) {
  if (!run.trains_text()) return inputs.embeds;
  const torch::AutoGradMode with_gradients(trains_text);
  const model::PromptEmbeds each = model::encode_prompts(run.bundle, inputs.ids);
  if (!inputs.rows.defined()) return each;
  return {rows_of(each.context, inputs.rows), rows_of(each.pooled, inputs.rows)};
}

torch::Tensor losses_of(Run& run, const SampleInputs& inputs, bool trains_text) {
  run.dropout->set(inputs.keys);  // text encoders may drop, too
  const model::PromptEmbeds embeds = prompt_embeds(run, inputs, trains_text);
  DiffusionBatch batch{inputs.latents, embeds.context, {}, inputs.keys, inputs.mask};
  if (run.bundle.is_xl()) batch.added = {embeds.pooled, inputs.time_ids};
  return run.loss->sample_losses(run.bundle.unet, batch, inputs.draws);
}

torch::Tensor first_rows(const torch::Tensor& all, std::int64_t count) {
  return all.defined() ? all.narrow(0, 0, count) : all;
}

// Of the photos before training: [photos].
torch::Tensor base_losses(Run& run, const SampleInputs& inputs, std::int64_t photos) {
  const torch::NoGradGuard no_grad;
  const auto of_photos = [photos](const torch::Tensor& all) { return first_rows(all, photos); };
  const model::PromptEmbeds& embeds = run.trains_text() ? inputs.base_embeds : inputs.embeds;
  DiffusionBatch batch{of_photos(inputs.latents), of_photos(embeds.context), {}, {}, of_photos(inputs.mask)};
  if (run.bundle.is_xl()) batch.added = {of_photos(embeds.pooled), of_photos(inputs.time_ids)};
  const DiffusionDraws& draws = inputs.draws;
  return run.loss->sample_losses(run.base_unet, batch,
                                 {of_photos(draws.noise), of_photos(draws.timesteps), of_photos(draws.perturbation)});
}

}  // namespace

torch::Tensor sample_losses(Run& run, const MicroInputs& inputs) {
  RECORD_USER_SCOPE("forward");
  const std::int64_t photos = inputs.instances;
  torch::Tensor of_base;
  // Before the trained model's pass, which leaves activations in memory. Photos are the first part, or begin it.
  if (!run.base_unet.is_empty() && photos > 0) of_base = base_losses(run, inputs.parts.front(), photos);
  std::vector<torch::Tensor> parts;
  for (const SampleInputs& part : inputs.parts) parts.push_back(losses_of(run, part, inputs.trains_text));
  const torch::Tensor losses = parts.size() == 1 ? parts.front() : torch::cat(parts);
  if (!of_base.defined()) return losses;
  const torch::Tensor of_photos = losses.narrow(0, 0, photos);
  const torch::Tensor weighted = of_photos * consistency_weights(of_photos, of_base, *run.config.objective.dco_beta);
  return torch::cat({weighted, losses.narrow(0, photos, losses.size(0) - photos)});
}

}  // namespace sdtune::train
