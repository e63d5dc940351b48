#include "train/prepare/prepare_data.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <optional>
#include <utility>

#include "model/core/device.h"
#include "model/pipeline/prompt_encoding.h"
#include "train/config/concept_options.h"
#include "train/data/dataset_doctor.h"
#include "train/data/photo_set.h"
#include "train/dist/stop_request.h"
#include "train/preflight/rendered_base.h"
#include "train/prepare/image_encoder.h"
#include "train/prepare/prepare_class_images.h"

namespace sdtune::train {

namespace {

CropRule crop_rule(const PrepareContext& context) {
  return crop_rule_of(context.config.data, *context.config.data.resolution, context.bundle.image_shape().step);
}

// Whether anything of a photo is cut away, so that it matters where its face is.
bool is_cut(const Photo& photo, const CropRule& rule) {
  const model::CropPlan plan = plan_crop(photo.width, photo.height, rule);
  return plan.free_columns() > 1 || plan.free_rows() > 1;
}

void warn_of_centred(const PrepareContext& context, const PhotoFolder& photos, const std::string& trouble) {
  const CropRule rule = crop_rule(context);
  std::size_t centred = 0;
  for (const Photo& photo : photos.photos) {
    if (photo.face || !is_cut(photo, rule)) continue;
    ++centred;
    if (!trouble.empty()) continue;
    tell(context.observers, &Observer::on_warning,
         Problem{photo.path.string(), "no face is found, so it is cropped at the centre",
                 "metadata.jsonl can say where it is: \"face\": [left, top, width, height]"});
  }
  if (trouble.empty() || centred == 0) return;
  const Problem fallback{
      "crop_style", "faces cannot be searched for, so " + std::to_string(centred) + " photos are cropped at the centre",
      trouble};
  tell(context.observers, &Observer::on_warning, fallback);
}

// The photos that the preflight read.
PhotoFolder take_photos(const PrepareContext& context) {
  const DataOptions& options = context.config.data;
  PhotoFolder photos = context.preflight.photos.folder;
  if (options.crop() == "face") warn_of_centred(context, photos, context.preflight.photos.face_trouble);
  drop_unused_faces(photos.photos, options);
  for (const Problem& problem : photos.bad) tell(context.observers, &Observer::on_warning, problem);
  for (const Problem& problem : photos.warnings) tell(context.observers, &Observer::on_warning, problem);
  const std::optional<Problem> camera = camera_photo_warning(context.bundle.folder, photos.photos);
  if (camera) tell(context.observers, &Observer::on_warning, *camera);
  return photos;
}

// As it is in memory already, null where it is not.
std::shared_ptr<const DecodedPhoto> decoded_of(const PhotoReport& report, const Photo& photo) {
  return report.kept ? report.kept->find(photo.path) : nullptr;
}

LatentOptions latent_options(const PrepareContext& context) {
  const DataOptions& options = context.config.data;
  const model::VaeConfig& vae = context.bundle.vae->config();
  LatentOptions latent;
  latent.seed = static_cast<std::uint64_t>(context.config.run.seed);
  latent.crop = crop_rule(context);
  latent.filter = model::parse_filter(options.image_interpolation_mode, "image_interpolation_mode");
  latent.random_flip = options.random_flip;
  latent.cache = options.cache_latents;
  latent.scaling_factor = vae.scaling_factor;
  latent.device = context.device;
  latent.memory_format = model::fast_memory_format(context.device, context.bundle.dtype());
  latent.shift_factor = vae.shift_factor.value_or(0.0);
  return latent;
}

std::vector<std::string> all_captions(const PrepareContext& context, const TrainingData& data) {
  std::vector<std::string> captions;
  for (const Photo& photo : data.photos.photos) {
    captions.push_back(photo.caption);
    if (!photo.auto_caption.empty()) captions.push_back(photo.auto_caption);
  }
  for (const ClassImage& image : data.class_images) captions.push_back(image.prompt);
  if (context.config.data.caption_dropout_rate > 0) captions.emplace_back();
  if (data.held_out) {
    captions.insert(captions.end(), data.held_out->captions.begin(), data.held_out->captions.end());
  }
  return captions;
}

std::unique_ptr<TextCache> prepare_texts(const PrepareContext& context, const TrainingData& data) {
  const auto tokenize = [&bundle = context.bundle](const std::vector<std::string>& texts) {
    return model::tokenize_prompts(bundle, texts);
  };
  const bool keeps_states = !context.trains_text() || context.config.objective.dco_beta;
  if (!keeps_states) return std::make_unique<TextCache>(all_captions(context, data), tokenize);
  const TextCache::Encode encode = [&bundle = context.bundle](const model::PromptIds& ids) {
    return model::encode_prompts(bundle, ids);
  };
  if (!data.store) return std::make_unique<TextCache>(all_captions(context, data), tokenize, encode);
  return std::make_unique<TextCache>(all_captions(context, data), tokenize, [&](const model::PromptIds& ids) {
    return encode_with_store(*data.store, ids, encode);
  });
}

// In cache_dir, or where `prepare` left what it encoded. Only the first rank writes.
std::unique_ptr<EncodedStore> open_store(const PrepareContext& context) {
  std::filesystem::path folder = context.config.data.cache_dir;
  if (folder.empty() && std::filesystem::is_directory(context.folder.cache())) folder = context.folder.cache();
  if (folder.empty()) return nullptr;
  // float32 has no name in stores of former versions, which knew no other.
  const torch::Dtype dtype = context.bundle.dtype();
  const std::string format = dtype == torch::kFloat32 ? std::string() : fmt::format(" {}", model::dtype_name(dtype));
  const std::string tiles = context.config.data.vae_tiling ? " tiled" : "";
  // In half precision too: an autoencoder that overflows there computes in float32.
  const std::string products = context.config.precision.allow_tf32 ? " tf32" : "";
  const std::string encoder = context.base_hash + " " + c10::DeviceTypeName(context.device.type()) + " " TORCH_VERSION +
                              format + tiles + products;
  return std::make_unique<EncodedStore>(
      real_file_system(), folder, encoder, context.group.is_first(),
      [observers = context.observers](const Problem& problem) { tell(observers, &Observer::on_warning, problem); });
}

void note_store(const TrainingData& data, std::vector<std::string>& notes) {
  if (!data.store) return;
  const std::int64_t found = data.store->found(), all = found + data.store->missed();
  notes.push_back(std::to_string(found) + " of " + std::to_string(all) + " encoded images and captions are from " +
                  data.store->folder().string());
}

EncodeAgain encode_again(const PrepareContext& context) {
  const auto warn = [observers = context.observers](const Problem& problem) {
    tell(observers, &Observer::on_warning, problem);
  };
  return {float32_image_encoder(context.bundle), warn};
}

void prepare_masks(const PrepareContext& context, TrainingData& data) {
  data.masks = std::make_unique<PhotoMasks>(data.photos.photos, *data.latents, context.bundle.vae_factor());
  for (const std::string& name : data.masks->without()) {
    tell(context.observers, &Observer::on_warning, Problem{name, "has no mask, so all of it counts", ""});
  }
  for (const Problem& problem : data.masks->uniform()) tell(context.observers, &Observer::on_warning, problem);
}

// Cropped in the middle and not mirrored, whatever the photos are.
void prepare_held_out(const PrepareContext& context, const EncodeImages& encode, TrainingData& data) {
  const std::string& folder = context.config.observe.validation_data_dir;
  if (folder.empty()) return;
  LatentOptions options = latent_options(context);
  options.random_flip = options.crop.random = false;
  options.cache = true;
  HeldOut held_out{std::make_unique<LatentCache>(options, encode, data.store.get(), encode_again(context)), {}};
  std::vector<ImageFile> files;
  const PhotoFolder& photos = context.preflight.held_out.folder;
  for (const Problem& problem : photos.bad) tell(context.observers, &Observer::on_warning, problem);
  for (const Problem& problem : photos.warnings) tell(context.observers, &Observer::on_warning, problem);
  for (const Photo& photo : photos.photos) {
    files.push_back({photo.path, std::nullopt, decoded_of(context.preflight.held_out, photo)});
    held_out.captions.push_back(photo.caption);
  }
  held_out.latents->load(files, {});
  data.held_out = std::move(held_out);
}

}  // namespace

std::vector<std::string> prepare_data(const PrepareContext& context, TrainingData& data) {
  const torch::NoGradGuard no_grad;
  std::vector<std::string> notes;
  const std::vector<ConceptOptions> concepts = concepts_of(context.config.data);
  data.photos = take_photos(context);
  data.identity = context.preflight.photos.identity;
  data.class_images = prepare_class_images(context, concepts);
  data.store = open_store(context);
  const EncodeImages encode = image_encoder(context.bundle);
  data.latents =
      std::make_unique<LatentCache>(latent_options(context), encode, data.store.get(), encode_again(context));
  std::vector<ImageFile> photos, class_images;
  const CropRule rule = crop_rule(context);
  const bool shows_faces = context.config.data.crop() == "face";
  for (const Photo& photo : data.photos.photos) {
    photos.push_back({photo.path, shows_faces ? face_to_show(photo, rule) : std::nullopt,
                      decoded_of(context.preflight.photos, photo)});
  }
  for (const ClassImage& image : data.class_images) class_images.push_back({image.path, std::nullopt});
  data.latents->load(photos, class_images, [&](std::int64_t done, std::int64_t total) {
    tell_phase(context.observers, "encoding images", done, total);
    stop_if_requested(context.stop);
  });
  if (context.config.objective.masked_loss) prepare_masks(context, data);
  if (!data.latents->cached()) notes.push_back(data.latents->why_not_cached());
  prepare_held_out(context, encode, data);
  data.texts = prepare_texts(context, data);
  note_store(data, notes);
  return notes;
}

}  // namespace sdtune::train
