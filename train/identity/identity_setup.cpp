#include "train/identity/identity_setup.h"

#include <algorithm>

#include "model/base/json.h"
#include "model/core/image_tensor.h"
#include "model/files/sha256.h"
#include "model/image/crop.h"
#include "model/image/image_read.h"
#include "train/config/concept_options.h"
#include "train/data/face_finder.h"
#include "train/data/trigger.h"
#include "train/identity/face_reader.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kLargestSide = 1024;  // px of a photo in which a face is recognized

bool has_network(const IdentityContext& context) {
  return !context.config.identity.identity_model.empty();
}

// Larger ones scaled down.
Image for_network(const Image& photo) {
  const std::int64_t longer = std::max(photo.width, photo.height);
  if (longer <= kLargestSide) return photo;
  return model::resized(photo, std::max<std::int64_t>(1, photo.width * kLargestSide / longer),
                        std::max<std::int64_t>(1, photo.height * kLargestSide / longer), model::Filter::kBicubic);
}

// px: what the first classifier reads. A base below it has always generated at that size, and a run of former versions
// goes on with the same evaluations.
constexpr std::int64_t kSmallestSide = 64;

std::int64_t reader_side(const IdentityContext& context) {
  return context.portrait_readers.side(context.config.identity);
}

std::vector<torch::Tensor> references(const IdentityContext& context, std::size_t subject) {
  std::vector<torch::Tensor> images;
  for (const Photo& photo : context.photos) {
    if (photo.subject != subject) continue;
    const Image image = model::read_image(photo.path);
    images.push_back(has_network(context) ? model::image_to_tensor(for_network(image))
                                          : image_for_reader(image, reader_side(context)));
  }
  return images;
}

}  // namespace

torch::Tensor image_for_reader(const Image& photo, std::int64_t side) {
  const model::CropPlan plan = model::center_crop(photo.width, photo.height, side);
  return model::image_to_tensor(model::cropped(photo, plan, model::Filter::kBicubic));
}

std::unique_ptr<IdentityReader> make_identity_reader(const IdentityContext& context) {
  const IdentityOptions& options = context.config.identity;
  if (!has_network(context)) return context.portrait_readers.load(options);
  // The base is read anew each time: what is trained has changed in the run's own modules.
  const auto load_base = [&bundle = context.bundle, dtype = context.dtype, device = context.device] {
    return model::load_bundle(bundle.folder, dtype, device);
  };
  return std::make_unique<FaceReader>(FaceReaderOptions{.face_models = face_models(context.config.data.face_model),
                                                        .recognizer = options.identity_model,
                                                        .load_base = load_base,
                                                        .steps = options.identity_inference_steps,
                                                        .stop = &context.stop.requested()});
}

std::vector<IdentitySubject> identity_subjects(const IdentityContext& context) {
  const DataOptions& options = context.config.data;
  std::vector<IdentitySubject> subjects;
  const std::vector<ConceptOptions> concepts = concepts_of(options);
  for (std::size_t i = 0; i < concepts.size(); ++i) {
    const std::string words = options.trigger_word.empty()
                                  ? trigger_of(concepts[i].instance_prompt, concepts[i].class_prompt)
                                  : options.trigger_word;
    subjects.push_back({words, concepts[i].class_prompt, references(context, i)});
  }
  return subjects;
}

std::int64_t identity_image_side(const IdentityContext& context) {
  const std::int64_t resolution = context.bundle.resolution();
  return has_network(context) ? resolution : std::min(std::max(resolution, kSmallestSide), reader_side(context));
}

std::string identity_eval_digest(const IdentityContext& context) {
  const IdentityOptions& options = context.config.identity;
  Json digest = {{"settings", context.fingerprint.settings},
                 {"images", context.fingerprint.images},
                 {"base", context.fingerprint.base_hash},
                 {"pictures", options.num_identity_images},
                 {"steps", options.identity_inference_steps}};
  if (has_network(context)) {
    digest["network"] = sha256_of_file(options.identity_model);
    for (const fs::path& file : face_models(context.config.data.face_model)) {
      digest[file.filename().string()] = sha256_of_file(file);
    }
  } else {
    for (const fs::path& file : context.portrait_readers.files(options)) {
      digest[file.filename().string()] = sha256_of_file(file);
    }
  }
  return sha256_hex(digest.dump()).substr(0, 16);
}

}  // namespace sdtune::train
