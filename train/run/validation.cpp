#include "train/run/validation.h"

#include <cstring>

#include "train/run/draw_pictures.h"
#include "train/run/held_out_loss.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace {

torch::Tensor bytes_of(const Image& picture) {
  return torch::from_blob(const_cast<std::uint8_t*>(picture.rgb.data()),
                          {static_cast<std::int64_t>(picture.rgb.size())}, torch::kUInt8);
}

PictureSettings validation_settings(const TrainConfig& config) {
  const ObserveOptions& options = config.observe;
  PictureSettings settings;
  settings.prompt = options.validation_prompt;
  if (!options.validation_negative_prompt.empty()) settings.negative_prompt = options.validation_negative_prompt;
  settings.steps = options.validation_inference_steps;
  settings.guidance_scale = options.validation_guidance_scale;
  settings.resolution = *config.data.resolution;
  settings.syntax = model::PromptSyntax::kWeighted;  // as `sample` and the web interfaces will draw it
  return settings;
}

// This rank's pictures, zero where another rank draws, so that the sum over ranks is every picture:
// [count, side * side * 3]. Whatever is there when `stop` asks.
torch::Tensor draw_share(Run& run, const PictureSettings& settings, const std::vector<std::uint64_t>& seeds,
                         const StopFlag& stop) {
  const auto count = static_cast<std::int64_t>(seeds.size());
  torch::Tensor pixels = torch::zeros({count, settings.resolution * settings.resolution * 3}, torch::kInt32);
  for (std::int64_t i = run.group->rank(); i < count; i += run.group->world_size()) {
    const std::vector<Image> drawn = draw_pictures(run.bundle, settings, {seeds[static_cast<std::size_t>(i)]}, stop);
    if (drawn.empty()) break;
    pixels[i].copy_(bytes_of(drawn.front()));
  }
  return pixels;
}

// Fills in pictures, prompts and seeds; false when asked to stop.
bool draw_validation(Run& run, ValidationEvent& event, const StopFlag& stop) {
  const PictureSettings settings = validation_settings(run.config);
  const std::int64_t count = run.config.observe.num_validation_images;
  for (std::int64_t i = 0; i < count; ++i) {
    event.prompts.push_back(settings.prompt);
    event.seeds.push_back(static_cast<std::uint64_t>(run.config.run.seed + i));
  }
  torch::Tensor pixels = draw_share(run, settings, event.seeds, stop).to(run.device);
  run.group->barrier();  // the shares differ in length
  if (agreed_signal(*run.group, stop) != 0) return false;
  run.group->all_reduce_sum(pixels);
  const torch::Tensor bytes = pixels.cpu().to(torch::kUInt8);
  const std::int64_t side = settings.resolution;
  for (std::int64_t i = 0; i < count; ++i) {
    Image picture{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3))};
    std::memcpy(picture.rgb.data(), bytes[i].const_data_ptr<std::uint8_t>(), picture.rgb.size());
    event.pictures.push_back(std::move(picture));
  }
  return true;
}

}  // namespace

std::optional<ValidationEvent> validate_model(Run& run, std::int64_t step, const StopFlag& stop) {
  ValidationEvent event;
  event.step = step;
  const bool draws = !run.config.observe.validation_prompt.empty();
  if (draws && !draw_validation(run, event, stop)) return std::nullopt;
  event.loss = held_out_loss(run);
  return event;
}

}  // namespace sdtune::train
