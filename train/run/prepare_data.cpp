#include "train/run/prepare_data.h"

#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <optional>
#include <utility>

#include "model/pipeline/prompt_encoding.h"
#include "train/data/concept_options.h"
#include "train/data/dataset_doctor.h"
#include "train/data/photo_exam.h"
#include "train/data/photo_set.h"
#include "train/run/prepare_class_images.h"
#include "train/run/rendered_base.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace {

// Sides that VAE and UNet halve evenly are multiples of this, px.
std::int64_t side_step(const model::ModelBundle& bundle) {
  return bundle.vae_factor() << (bundle.unet->config().num_levels() - 1);
}

CropRule crop_rule(const Run& run) {
  return crop_rule_of(run.config.data, *run.config.data.resolution, side_step(run.bundle));
}

// Whether anything of a photo is cut away, so that it matters where its face is.
bool is_cut(const Photo& photo, const CropRule& rule) {
  const model::CropPlan plan = plan_crop(photo.width, photo.height, rule);
  return plan.free_columns() > 1 || plan.free_rows() > 1;
}

void warn_of_centred(const PhotoFolder& photos, const CropRule& rule, const std::string& trouble,
                     const std::vector<Observer*>& observers) {
  std::size_t centred = 0;
  for (const Photo& photo : photos.photos) {
    if (photo.face || !is_cut(photo, rule)) continue;
    ++centred;
    if (!trouble.empty()) continue;
    tell(observers, &Observer::on_warning,
         Problem{photo.path.string(), "no face is found, so it is cropped at the centre",
                 "metadata.jsonl can say where it is: \"face\": [left, top, width, height]"});
  }
  if (trouble.empty() || centred == 0) return;
  const Problem fallback{
      "crop_style", "faces cannot be looked for, so " + std::to_string(centred) + " photos are cropped at the centre",
      trouble};
  tell(observers, &Observer::on_warning, fallback);
}

// Faces are looked for only where crops are to show them; where there is none, crops fall back to the middle.
PhotoFolder scan_with_faces(const Run& run, const std::vector<ConceptOptions>& concepts,
                            const std::vector<Observer*>& observers) {
  const DataOptions& options = run.config.data;
  if (options.crop() != "face") {
    PhotoFolder photos = scan_photos(concepts, options);
    for (Photo& photo : photos.photos) photo.face.reset();  // a note that changes nothing must not make another run
    return photos;
  }
  PhotoExaminer examiner(options.face_model);
  PhotoFolder photos =
      scan_photos(concepts, options, [&](Photo& photo, const Image& preview) { examiner.examine(photo, preview); });
  warn_of_centred(photos, crop_rule(run), examiner.trouble(), observers);
  return photos;
}

PhotoFolder scan(const Run& run, const std::vector<ConceptOptions>& concepts, const std::vector<Observer*>& observers) {
  const DataOptions& options = run.config.data;
  tell_phase(observers, "reading photos", 0, 0);
  PhotoFolder photos = scan_with_faces(run, concepts, observers);
  if (!photos.bad.empty() && options.on_bad_image == "stop") throw DataError(photos.bad);
  if (photos.photos.empty()) throw DataError(concepts.front().images, "none of its photos can be read");
  for (const Problem& problem : photos.bad) tell(observers, &Observer::on_warning, problem);
  for (const Problem& problem : photos.warnings) tell(observers, &Observer::on_warning, problem);
  const std::optional<Problem> camera = camera_photo_warning(run.bundle.folder, photos.photos);
  if (camera) tell(observers, &Observer::on_warning, *camera);
  return photos;
}

LatentOptions latent_options(const Run& run) {
  const DataOptions& options = run.config.data;
  const model::VaeConfig& vae = run.bundle.vae->config();
  LatentOptions latent;
  latent.seed = static_cast<std::uint64_t>(run.config.run.seed);
  latent.crop = crop_rule(run);
  latent.filter = model::parse_filter(options.image_interpolation_mode, "image_interpolation_mode");
  latent.random_flip = options.random_flip;
  latent.cache = options.cache_latents;
  latent.scaling_factor = vae.scaling_factor;
  latent.device = run.device;
  latent.shift_factor = vae.shift_factor.value_or(0.0);
  return latent;
}

std::vector<std::string> all_captions(const Run& run) {
  std::vector<std::string> captions;
  for (const Photo& photo : run.data.photos.photos) captions.push_back(photo.caption);
  for (const ClassPicture& picture : run.data.class_images) captions.push_back(picture.prompt);
  if (run.config.data.caption_dropout_rate > 0) captions.emplace_back();
  if (run.data.held_out) {
    captions.insert(captions.end(), run.data.held_out->captions.begin(), run.data.held_out->captions.end());
  }
  return captions;
}

std::unique_ptr<TextCache> prepare_texts(Run& run) {
  const auto tokenize = [&run](const std::vector<std::string>& texts) {
    return model::tokenize_prompts(run.bundle, texts);
  };
  if (run.trains_text()) return std::make_unique<TextCache>(all_captions(run), tokenize);
  const TextCache::Encode encode = [&run](const model::PromptIds& ids) {
    return model::encode_prompts(run.bundle, ids);
  };
  if (!run.data.store) return std::make_unique<TextCache>(all_captions(run), tokenize, encode);
  return std::make_unique<TextCache>(all_captions(run), tokenize, [&](const model::PromptIds& ids) {
    return encode_with_store(*run.data.store, ids, encode);
  });
}

// In cache_dir, or where `prepare` left what it encoded. Only the first rank writes.
std::unique_ptr<EncodedStore> open_store(const Run& run, const std::vector<Observer*>& observers) {
  std::filesystem::path folder = run.config.data.cache_dir;
  if (folder.empty() && std::filesystem::is_directory(run.folder.cache())) folder = run.folder.cache();
  if (folder.empty()) return nullptr;
  const std::string encoder = run.identity.base_hash + " " + c10::DeviceTypeName(run.device.type()) + " " TORCH_VERSION;
  return std::make_unique<EncodedStore>(
      real_file_system(), folder, encoder, run.group->is_first(),
      [observers](const Problem& problem) { tell(observers, &Observer::on_warning, problem); });
}

void note_store(Run& run) {
  if (!run.data.store) return;
  const std::int64_t found = run.data.store->found(), all = found + run.data.store->missed();
  run.notes.push_back(std::to_string(found) + " of " + std::to_string(all) +
                      " encoded pictures and captions are from " + run.data.store->folder().string());
}

void prepare_masks(Run& run, const std::vector<Observer*>& observers) {
  run.data.masks = std::make_unique<PhotoMasks>(run.data.photos.photos, *run.data.latents, run.bundle.vae_factor());
  for (const std::string& name : run.data.masks->without()) {
    tell(observers, &Observer::on_warning, Problem{name, "has no mask, so all of it counts", ""});
  }
}

// Cropped in the middle and not mirrored, whatever the photos are.
void prepare_held_out(Run& run, const EncodePictures& encode) {
  const std::string& folder = run.config.observe.validation_data_dir;
  if (folder.empty()) return;
  const PhotoFolder found = scan_photos(folder, run.config.data.instance_prompt, true);
  if (!found.bad.empty()) throw DataError(found.bad);
  LatentOptions options = latent_options(run);
  options.random_flip = options.crop.random = false;
  options.cache = true;
  HeldOut held_out{std::make_unique<LatentCache>(options, encode, run.data.store.get()), {}};
  std::vector<PictureFile> files;
  for (const Photo& photo : found.photos) {
    files.push_back({photo.path, std::nullopt});
    held_out.captions.push_back(photo.caption);
  }
  held_out.latents->load(files, {});
  run.data.held_out = std::move(held_out);
}

}  // namespace

void prepare_data(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop) {
  const torch::NoGradGuard no_grad;
  const std::vector<ConceptOptions> concepts = concepts_of(run.config.data);
  run.data.photos = scan(run, concepts, observers);
  run.data.class_images = prepare_class_images(run, concepts, observers, stop);
  run.data.store = open_store(run, observers);
  const auto encode = [&run](const torch::Tensor& pictures) {
    const torch::NoGradGuard encode_without_gradients;
    const torch::Tensor weight = run.bundle.vae->parameters().front();
    return run.bundle.vae->encode(pictures.to(weight.device(), weight.scalar_type()));
  };
  run.data.latents = std::make_unique<LatentCache>(latent_options(run), encode, run.data.store.get());
  std::vector<PictureFile> photos, class_images;
  const CropRule rule = crop_rule(run);
  const bool shows_faces = run.config.data.crop() == "face";
  for (const Photo& photo : run.data.photos.photos) {
    photos.push_back({photo.path, shows_faces ? face_to_show(photo, rule) : std::nullopt});
  }
  for (const ClassPicture& picture : run.data.class_images) class_images.push_back({picture.path, std::nullopt});
  run.data.latents->load(photos, class_images, [&](std::int64_t done, std::int64_t total) {
    tell_phase(observers, "encoding pictures", done, total);
    stop_if_asked(stop);
  });
  if (run.config.objective.masked_loss) prepare_masks(run, observers);
  if (!run.data.latents->cached()) run.notes.push_back(run.data.latents->why_not_cached());
  prepare_held_out(run, encode);
  run.data.texts = prepare_texts(run);
  note_store(run);
}

}  // namespace sdtune::train
