#include "train/identity/identity_setup.h"

#include <algorithm>

#include "model/base/json.h"
#include "model/files/sha256.h"
#include "train/config/concept_options.h"
#include "train/data/face_finder.h"
#include "train/data/trigger.h"
#include "train/identity/face_reader.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

bool has_network(const IdentityContext& context) {
  return !context.config.identity.identity_model.empty();
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
    if (photo.subject == subject) images.push_back(context.inputs.photos->read(photo));
  }
  return images;
}

// Of which the images of an evaluation are generated.
std::string subject_words(const DataOptions& options, const ConceptOptions& subject) {
  return options.trigger_word.empty() ? trigger_of(subject.instance_prompt, subject.class_prompt)
                                      : options.trigger_word;
}

// Whether the subject's words follow from the captions and the class prompt, which the fingerprint has: then the digest
// is that of former versions, whose curves go on.
bool captions_say_the_words(const IdentityContext& context) {
  const DataOptions& options = context.config.data;
  if (!options.concepts.empty() || !options.trigger_word.empty()) return false;
  return std::all_of(context.photos.begin(), context.photos.end(),
                     [&](const Photo& photo) { return photo.caption == options.instance_prompt; });
}

// A hash, since a text need not be UTF-8, which JSON must be.
std::string hash_of_words(const DataOptions& options) {
  std::string text;
  for (const ConceptOptions& subject : concepts_of(options)) {
    text.append(subject_words(options, subject)).append("\n").append(subject.class_prompt).append("\n");
  }
  return sha256_hex(text);
}

}  // namespace

std::unique_ptr<IdentityReader> make_identity_reader(const IdentityContext& context) {
  const IdentityOptions& options = context.config.identity;
  if (!has_network(context)) return context.portrait_readers.load(options);
  // The base is read anew each time: training has changed the run's own modules.
  const auto load_base = [&bundle = context.bundle, dtype = context.dtype, device = context.device] {
    return model::load_bundle(bundle.folder, dtype, device);
  };
  return std::make_unique<FaceReader>(FaceReaderOptions{.recognizer = context.inputs.recognizer,
                                                        .load_base = load_base,
                                                        .steps = options.identity_inference_steps,
                                                        .stop = &context.stop.requested()});
}

std::vector<IdentitySubject> identity_subjects(const IdentityContext& context) {
  const DataOptions& options = context.config.data;
  std::vector<IdentitySubject> subjects;
  const std::vector<ConceptOptions> concepts = concepts_of(options);
  for (std::size_t i = 0; i < concepts.size(); ++i) {
    subjects.push_back({subject_words(options, concepts[i]), concepts[i].class_prompt, references(context, i)});
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
  if (!captions_say_the_words(context)) digest["words"] = hash_of_words(context.config.data);
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
