#include "train/run/identity_reader.h"

#include <algorithm>

#include "model/base/json.h"
#include "model/base/sha256.h"
#include "model/base/share_folder.h"
#include "model/image/crop.h"
#include "model/image/image_read.h"
#include "train/data/concept_options.h"
#include "train/data/picture_tensor.h"
#include "train/data/trigger.h"
#include "train/evaluate/face_reader.h"
#include "train/evaluate/judge_reader.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kLargestSide = 1024;  // px of a photo in which a face is recognized

bool has_network(const Run& run) {
  return !run.config.identity.identity_model.empty();
}

// Larger ones scaled down.
Image for_network(const Image& photo) {
  const std::int64_t longer = std::max(photo.width, photo.height);
  if (longer <= kLargestSide) return photo;
  return model::resized(photo, std::max<std::int64_t>(1, photo.width * kLargestSide / longer),
                        std::max<std::int64_t>(1, photo.height * kLargestSide / longer), model::Filter::kBicubic);
}

std::vector<torch::Tensor> references(const Run& run, std::size_t subject) {
  std::vector<torch::Tensor> pictures;
  for (const Photo& photo : run.data.photos.photos) {
    if (photo.subject != subject) continue;
    const Image image = model::read_image(photo.path);
    pictures.push_back(has_network(run) ? picture_to_tensor(for_network(image)) : picture_for_judge(image));
  }
  return pictures;
}

}  // namespace

fs::path identity_judge_folder(const IdentityOptions& options) {
  return options.identity_judge.empty() ? find_shared_file("models/portrait-judge") : fs::path(options.identity_judge);
}

torch::Tensor picture_for_judge(const Image& photo) {
  const model::CropPlan plan = model::center_crop(photo.width, photo.height, judge::kJudgeSize);
  return picture_to_tensor(model::cropped(photo, plan, model::Filter::kBicubic));
}

std::unique_ptr<evaluate::ProbeReader> make_identity_reader(Run& run, const StopFlag& stop) {
  const IdentityOptions& options = run.config.identity;
  if (!has_network(run)) {
    return std::make_unique<evaluate::JudgeReader>(judge::Judge::load(identity_judge_folder(options), torch::kCPU));
  }
  // The base is read anew each time: what is trained has changed in the run's own modules.
  const auto load_base = [&run] { return model::load_bundle(run.bundle.folder, run.dtype, run.device); };
  return std::make_unique<evaluate::FaceReader>(
      evaluate::FaceReaderOptions{.face_models = face_models(run.config.data.face_model),
                                  .recognizer = options.identity_model,
                                  .load_base = load_base,
                                  .steps = options.identity_inference_steps,
                                  .stop = &stop.asked()});
}

std::vector<evaluate::ProbeSubject> identity_subjects(const Run& run) {
  const DataOptions& options = run.config.data;
  std::vector<evaluate::ProbeSubject> subjects;
  const std::vector<ConceptOptions> concepts = concepts_of(options);
  for (std::size_t i = 0; i < concepts.size(); ++i) {
    const std::string words = options.trigger_word.empty()
                                  ? trigger_of(concepts[i].instance_prompt, concepts[i].class_prompt)
                                  : options.trigger_word;
    subjects.push_back({words, concepts[i].class_prompt, references(run, i)});
  }
  return subjects;
}

std::int64_t identity_picture_side(const Run& run) {
  return has_network(run) ? run.bundle.unet->config().sample_size * run.bundle.vae_factor() : judge::kJudgeSize;
}

std::string identity_exam(const Run& run) {
  const IdentityOptions& options = run.config.identity;
  Json exam = {{"settings", run.identity.settings},
               {"images", run.identity.images},
               {"base", run.identity.base_hash},
               {"pictures", options.num_identity_images},
               {"steps", options.identity_inference_steps}};
  if (has_network(run)) {
    exam["network"] = sha256_of_file(options.identity_model);
    for (const fs::path& file : face_models(run.config.data.face_model)) {
      exam[file.filename().string()] = sha256_of_file(file);
    }
  } else {
    for (const char* file : {"judge.json", "judge.safetensors"}) {
      exam[file] = sha256_of_file(identity_judge_folder(options) / file);
    }
  }
  return sha256_hex(exam.dump()).substr(0, 16);
}

}  // namespace sdtune::train
