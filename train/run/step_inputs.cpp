#include "train/run/step_inputs.h"

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
  if (!run.base_unet.is_empty()) inputs.base_embeds = run.data.texts->states(texts);
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

}  // namespace

std::vector<torch::Tensor*> MicroInputs::tensors() {
  std::vector<torch::Tensor*> all;
  for (SampleInputs& part : parts) {
    for (torch::Tensor* tensor :
         {&part.latents, &part.draws.noise, &part.draws.timesteps, &part.draws.perturbation, &part.embeds.context,
          &part.embeds.pooled, &part.base_embeds.context, &part.base_embeds.pooled, &part.ids.ids, &part.ids.ids_2,
          &part.rows, &part.time_ids, &part.mask}) {
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

}  // namespace sdtune::train
