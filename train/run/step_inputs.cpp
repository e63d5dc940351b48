#include "train/run/step_inputs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/core/device_copy.h"
#include "model/core/random.h"

namespace sdtune::train {

namespace {

std::string caption(const Run& run, const BatchSlot& slot) {
  const DataOptions& options = run.config.data;
  if (slot.class_image) return run.data.class_images[static_cast<std::size_t>(slot.image)].prompt;
  const auto seed = static_cast<std::uint64_t>(run.config.run.seed);
  const model::DrawKey key{seed, model::Draw::kDropout, slot.step, slot.sample, slot.class_image};
  if (options.caption_dropout_rate > 0 && model::draw_uniform(key) < options.caption_dropout_rate) return "";
  const Photo& photo = run.data.photos.photos[static_cast<std::size_t>(slot.image)];
  if (photo.auto_caption.empty()) return photo.caption;
  const model::DrawKey described{seed, model::Draw::kAutoCaption, slot.step, slot.sample, slot.class_image};
  return model::draw_uniform(described) < options.auto_caption_rate ? photo.auto_caption : photo.caption;
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

void gather_texts(Run& run, const std::vector<BatchSlot>& slots, SampleInputs& inputs) {
  const std::vector<std::string> texts = captions(run, slots);
  if (!run.trains_text()) {
    inputs.embeds = run.data.texts->states(texts);
    return;
  }
  if (!encodes_each_once(run)) {
    inputs.ids = run.data.texts->ids(texts);
    return;
  }
  std::vector<std::string> distinct;
  torch::Tensor rows = torch::empty({std::ssize(texts)}, torch::kInt64);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto found = std::find(distinct.begin(), distinct.end(), texts[i]);
    rows.data_ptr<std::int64_t>()[i] = found - distinct.begin();
    if (found == distinct.end()) distinct.push_back(texts[i]);
  }
  inputs.ids = run.data.texts->ids(distinct);
  if (distinct.size() < texts.size()) inputs.rows = rows;
}

SampleInputs gather_samples(Run& run, const std::vector<BatchSlot>& slots) {
  SampleInputs inputs;
  for (const BatchSlot& slot : slots) inputs.keys.push_back(slot.key());
  gather_texts(run, slots, inputs);
  inputs.latents = run.data.latents->latents(slots).to(run.dtype);
  inputs.draws = run.loss->draw(inputs.keys, inputs.latents.sizes(), run.device);
  if (run.bundle.is_xl()) {
    inputs.time_ids = model::copy_to_device(run.data.latents->time_ids(slots), run.device);
  }
  if (run.data.masks) inputs.mask = model::copy_to_device(run.data.masks->of(slots), run.device);
  return inputs;
}

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

}  // namespace

std::vector<torch::Tensor*> MicroInputs::tensors() {
  std::vector<torch::Tensor*> all;
  for (SampleInputs& part : parts) {
    for (torch::Tensor* tensor :
         {&part.latents, &part.draws.noise, &part.draws.timesteps, &part.draws.perturbation, &part.embeds.context,
          &part.embeds.pooled, &part.ids.ids, &part.ids.ids_2, &part.rows, &part.time_ids, &part.mask}) {
      if (tensor->defined()) all.push_back(tensor);
    }
  }
  return all;
}

std::string MicroInputs::shapes() {
  std::string text = fmt::format("{} {}", instances, trains_text);
  for (const torch::Tensor* tensor : tensors()) {
    text += fmt::format("; {} {} {}", c10::toString(tensor->scalar_type()), fmt::join(tensor->sizes(), "x"),
                        fmt::join(tensor->strides(), ","));
  }
  return text;
}

MicroInputs gather_inputs(Run& run, const std::vector<BatchSlot>& slots, std::int64_t instances) {
  RECORD_USER_SCOPE("load batch");
  MicroInputs inputs{{}, instances, run.trains_text_at(slots.front().step)};
  const LatentCache& latents = *run.data.latents;
  if (latents.size_of(slots.front()) == latents.size_of(slots.back())) {
    inputs.parts.push_back(gather_samples(run, slots));
    return inputs;
  }
  const auto middle = slots.begin() + static_cast<std::ptrdiff_t>(instances);
  inputs.parts.push_back(gather_samples(run, {slots.begin(), middle}));
  inputs.parts.push_back(gather_samples(run, {middle, slots.end()}));
  return inputs;
}

torch::Tensor sample_losses(Run& run, const MicroInputs& inputs) {
  RECORD_USER_SCOPE("forward");
  std::vector<torch::Tensor> losses;
  for (const SampleInputs& part : inputs.parts) losses.push_back(losses_of(run, part, inputs.trains_text));
  return losses.size() == 1 ? losses.front() : torch::cat(losses);
}

}  // namespace sdtune::train
