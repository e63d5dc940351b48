#include "train/run/held_out_loss.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "model/pipeline/prompt_encoding.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kTimesteps = 8;                          // of each photo
constexpr std::uint64_t kHeldOutStep = std::uint64_t{1} << 42;  // draws of its own, which no training step has

// One photo at each timestep.
std::vector<BatchSlot> slots_of(std::int64_t photo) {
  std::vector<BatchSlot> slots;
  for (std::int64_t i = 0; i < kTimesteps; ++i) {
    slots.push_back({.step = kHeldOutStep + static_cast<std::uint64_t>(i),
                     .sample = static_cast<std::uint64_t>(photo),
                     .image = photo});
  }
  return slots;
}

torch::Tensor even_timesteps(const Run& run, const std::vector<BatchSlot>& slots) {
  const std::int64_t first = run.config.objective.min_timestep;
  const std::int64_t end = run.config.objective.max_timestep.value_or(run.loss->num_train_timesteps());
  std::vector<std::int64_t> timesteps;
  for (const BatchSlot& slot : slots) {
    const auto place = static_cast<std::int64_t>(slot.step - kHeldOutStep);
    timesteps.push_back(first + (2 * place + 1) * (end - first) / (2 * kTimesteps));
  }
  return torch::tensor(timesteps, torch::kInt64).to(run.device);
}

DiffusionBatch load(Run& run, const std::vector<BatchSlot>& slots) {
  const HeldOut& held_out = *run.data.held_out;
  const std::string& caption = held_out.captions.at(static_cast<std::size_t>(slots.front().image));
  const std::vector<std::string> texts(slots.size(), caption);
  const model::PromptEmbeds embeds =
      run.trains_text() ? model::encode_prompts(run.bundle, run.data.texts->ids(texts)) : run.data.texts->states(texts);
  DiffusionBatch batch;
  batch.latents = held_out.latents->latents(slots).to(run.dtype);
  batch.context = embeds.context;
  if (run.bundle.is_xl()) batch.added = {embeds.pooled, held_out.latents->time_ids(slots).to(run.device)};
  for (const BatchSlot& slot : slots) batch.keys.push_back(slot.key());
  return batch;
}

}  // namespace

std::optional<double> held_out_loss(Run& run) {
  if (!run.data.held_out) return std::nullopt;
  const torch::NoGradGuard no_grad;
  double sum = 0;
  const auto photos = static_cast<std::int64_t>(run.data.held_out->captions.size());
  for (std::int64_t photo = 0; photo < photos; ++photo) {
    const std::vector<BatchSlot> all = slots_of(photo);
    for (std::int64_t begin = 0; begin < kTimesteps; begin += run.micro_batch) {
      const std::int64_t end = std::min(begin + run.micro_batch, kTimesteps);
      const std::vector<BatchSlot> slots(all.begin() + begin, all.begin() + end);
      const DiffusionBatch batch = load(run, slots);
      DiffusionDraws draws = run.loss->draw(batch.keys, batch.latents.sizes(), run.device);
      draws.timesteps = even_timesteps(run, slots);
      draws.perturbation = torch::Tensor();
      sum += run.loss->sample_losses(run.bundle.unet, batch, draws).sum().item<double>();
    }
  }
  return sum / static_cast<double>(photos * kTimesteps);
}

}  // namespace sdtune::train
