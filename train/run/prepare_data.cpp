#include "train/run/prepare_data.h"

#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

#include "model/pipeline/prompt_encoding.h"
#include "train/data/class_images.h"
#include "train/run/draw_pictures.h"
#include "train/run/rendered_base.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace {

// A class picture wants to look right, not to be drawn fast: diffusers' defaults.
constexpr std::int64_t kClassImageSteps = 50;
constexpr double kClassImageGuidance = 7.5;

PhotoFolder scan(const Run& run, const std::vector<Observer*>& observers) {
  const DataOptions& options = run.config.data;
  tell_phase(observers, "reading photos", 0, 0);
  PhotoFolder photos = scan_photos(options.images, options.instance_prompt, options.use_captions);
  if (!photos.bad.empty() && options.on_bad_image == "stop") throw DataError(photos.bad);
  if (photos.photos.empty()) throw DataError(options.images, "none of its photos can be read");
  for (const Problem& problem : photos.bad) tell(observers, &Observer::on_warning, problem);
  for (const Problem& problem : photos.warnings) tell(observers, &Observer::on_warning, problem);
  const std::optional<Problem> camera = camera_photo_warning(run.bundle.folder, photos.photos);
  if (camera) tell(observers, &Observer::on_warning, *camera);
  return photos;
}

std::vector<std::filesystem::path> prepare_class_images(Run& run, const std::vector<Observer*>& observers,
                                                        const StopFlag& stop) {
  const DataOptions& options = run.config.data;
  if (!run.has_prior()) return {};
  const PictureSettings pictures = {options.class_prompt, std::nullopt, kClassImageSteps, kClassImageGuidance,
                                    *options.resolution};
  const ClassImageSettings settings = {options.class_prompt, static_cast<std::uint64_t>(run.config.run.seed),
                                       run.identity.base_hash, *options.resolution,
                                       sampler_description(run.bundle, pictures)};
  const std::filesystem::path folder = options.class_data_dir;
  const ClassImagePlan plan = plan_class_images(folder, options.num_class_images, settings);
  run.group->barrier();  // all ranks have seen the same folder before any writes into it
  if (!plan.missing.empty()) {
    const RankShare share = {run.group->rank(), run.group->world_size(), options.sample_batch_size};
    draw_class_images(
        real_file_system(), plan, settings, share,
        [&](const std::vector<std::uint64_t>& seeds) {
          stop_if_asked(stop);
          std::vector<Image> drawn = draw_pictures(run.bundle, pictures, seeds, stop);
          if (drawn.empty()) stop_if_asked(stop);
          return drawn;
        },
        [&](std::int64_t done, std::int64_t total) { tell_phase(observers, "drawing class pictures", done, total); });
  }
  run.group->barrier();
  if (run.group->is_first() && !plan.missing.empty()) {
    write_class_manifest(real_file_system(), folder, plan, settings);
  }
  return plan.files;
}

LatentOptions latent_options(const Run& run) {
  const DataOptions& options = run.config.data;
  const model::VaeConfig& vae = run.bundle.vae->config();
  LatentOptions latent;
  latent.seed = static_cast<std::uint64_t>(run.config.run.seed);
  latent.resolution = *options.resolution;
  latent.filter = model::parse_filter(options.image_interpolation_mode, "image_interpolation_mode");
  latent.center_crop = options.center_crop;
  latent.random_flip = options.random_flip;
  latent.cache = options.cache_latents;
  latent.scaling_factor = vae.scaling_factor;
  latent.shift_factor = vae.shift_factor.value_or(0.0);
  return latent;
}

std::vector<std::string> all_captions(const Run& run) {
  std::vector<std::string> captions;
  for (const Photo& photo : run.data.photos.photos) captions.push_back(photo.caption);
  if (run.has_prior()) captions.push_back(run.config.data.class_prompt);
  if (run.config.data.caption_dropout_rate > 0) captions.emplace_back();
  return captions;
}

std::unique_ptr<TextCache> prepare_texts(Run& run) {
  const auto tokenize = [&run](const std::vector<std::string>& texts) {
    return model::tokenize_prompts(run.bundle, texts);
  };
  if (run.trains_text()) return std::make_unique<TextCache>(all_captions(run), tokenize);
  return std::make_unique<TextCache>(all_captions(run), tokenize, [&run](const model::PromptIds& ids) {
    return model::encode_prompts(run.bundle, ids);
  });
}

}  // namespace

void prepare_data(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop) {
  const torch::NoGradGuard no_grad;
  run.data.photos = scan(run, observers);
  run.data.class_images = prepare_class_images(run, observers, stop);
  run.data.latents = std::make_unique<LatentCache>(latent_options(run), [&run](const torch::Tensor& pictures) {
    const torch::NoGradGuard encode_without_gradients;
    const torch::Tensor weight = run.bundle.vae->parameters().front();
    return run.bundle.vae->encode(pictures.to(weight.device(), weight.scalar_type()));
  });
  std::vector<std::filesystem::path> photos;
  for (const Photo& photo : run.data.photos.photos) photos.push_back(photo.path);
  run.data.latents->load(photos, run.data.class_images, [&](std::int64_t done, std::int64_t total) {
    tell_phase(observers, "encoding pictures", done, total);
    stop_if_asked(stop);
  });
  if (!run.data.latents->cached()) run.notes.push_back(run.data.latents->why_not_cached());
  run.data.texts = prepare_texts(run);
}

}  // namespace sdtune::train
