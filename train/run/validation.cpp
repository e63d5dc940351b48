#include "train/run/validation.h"

#include <cstring>

#include "train/run/draw_pictures.h"

namespace sdtune::train {

namespace {

torch::Tensor bytes_of(const Image& picture) {
  return torch::from_blob(const_cast<std::uint8_t*>(picture.rgb.data()),
                          {static_cast<std::int64_t>(picture.rgb.size())}, torch::kUInt8);
}

}  // namespace

ValidationEvent draw_validation(Run& run, std::int64_t step) {
  const ObserveOptions& options = run.config.observe;
  PictureSettings settings;
  settings.prompt = options.validation_prompt;
  if (!options.validation_negative_prompt.empty()) settings.negative_prompt = options.validation_negative_prompt;
  settings.steps = options.validation_inference_steps;
  settings.guidance_scale = options.validation_guidance_scale;
  settings.resolution = *run.config.data.resolution;

  ValidationEvent event;
  event.step = step;
  const std::int64_t count = options.num_validation_images;
  const std::int64_t side = settings.resolution;
  // Zero where another rank draws, so that the sum over ranks is every picture: [count, side * side * 3].
  torch::Tensor pixels = torch::zeros({count, side * side * 3}, torch::kInt32);
  for (std::int64_t i = 0; i < count; ++i) {
    event.prompts.push_back(options.validation_prompt);
    event.seeds.push_back(static_cast<std::uint64_t>(run.config.run.seed + i));
    if (i % run.group->world_size() != run.group->rank()) continue;
    pixels[i].copy_(bytes_of(draw_pictures(run.bundle, settings, {event.seeds.back()}).front()));
  }
  pixels = pixels.to(run.device);
  run.group->all_reduce_sum(pixels);
  const torch::Tensor bytes = pixels.cpu().to(torch::kUInt8);
  for (std::int64_t i = 0; i < count; ++i) {
    Image picture{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3))};
    std::memcpy(picture.rgb.data(), bytes[i].const_data_ptr<std::uint8_t>(), picture.rgb.size());
    event.pictures.push_back(std::move(picture));
  }
  return event;
}

}  // namespace sdtune::train
