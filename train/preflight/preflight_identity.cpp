// The check of what identity evaluation needs.
#include <algorithm>
#include <cstddef>
#include <string>

#include "model/files/hub_cache.h"
#include "model/files/model_note.h"
#include "train/config/concept_options.h"
#include "train/config/preset.h"
#include "train/data/photo_set.h"
#include "train/data/trigger.h"
#include "train/preflight/preflight_checks.h"
#include "train/preflight/rendered_base.h"

namespace sdtune::train {

namespace {

// A base of camera photos generates nothing that the classifier was trained to read.
void check_rendered(const std::string& base, std::vector<Problem>& problems) {
  if (read_model_note(find_model_folder(base)).rendered_people) return;
  problems.push_back(
      {"identity_steps", "needs a base of rendered people, for the portrait classifier (got " + base + ")",
       "give identity_model, or leave it out; validation_prompt and validation_data_dir work with any base"});
}

// The images of an evaluation are of a subject's words; words that no photo is trained with show the base's people.
void check_trained_words(const TrainConfig& config, const std::vector<Photo>& photos, std::size_t subject,
                         const std::string& words, std::vector<Problem>& problems) {
  const std::string& resumed = config.checkpoint.resume_from_checkpoint;  // a run may have begun before this check
  if (!resumed.empty() && resumed != "auto") return;
  const auto photo =
      std::find_if(photos.begin(), photos.end(), [&](const Photo& candidate) { return candidate.subject == subject; });
  if (photo == photos.end() || is_said_of(photos, subject, words)) return;
  const std::string place = config.data.concepts.empty() ? "" : "concepts[" + std::to_string(subject + 1) + "].";
  problems.push_back({place + "instance_prompt",
                      "has the words \"" + words +
                          "\", of which identity_steps generates images, and no photo's caption has them (that of " +
                          photo->path.string() + " is \"" + photo->caption + "\")",
                      "call the subject as the captions do: \"a photo of ohwx man\" where they say ohwx man"});
}

void check_triggers(const TrainConfig& config, const std::vector<Photo>& photos, std::vector<Problem>& problems) {
  if (!config.data.trigger_word.empty()) return;  // the check of the photos looks for it in the captions
  std::vector<Problem> reported_by_the_images;
  const std::vector<ConceptOptions> subjects = concepts_of(config.data, reported_by_the_images);
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const ConceptOptions& subject = subjects[i];
    const std::string words = trigger_of(subject.instance_prompt, subject.class_prompt);
    check_trained_words(config, photos, i, words, problems);
    if (!words.empty()) continue;
    problems.push_back({"identity_steps",
                        "needs words for the subject, and the class prompt has all of the instance prompt's (got \"" +
                            subject.instance_prompt + "\")",
                        "say \"a photo of sks person\", or give trigger_word"});
  }
}

}  // namespace

void check_identity(const TrainConfig& config, const PortraitReaderSource& readers, const std::vector<Photo>& photos,
                    std::vector<Problem>& problems) {
  const IdentityOptions& options = config.identity;
  if (!options.identity_steps) {
    if (options.early_stop_patience) {
      problems.push_back({"early_stop_patience", "needs identity evaluations", "give identity_steps as well"});
    }
    if (!options.identity_model.empty()) {
      problems.push_back({"identity_model", "needs identity evaluations", "give identity_steps as well"});
    }
    return;
  }
  check_triggers(config, photos, problems);
  if (!options.identity_model.empty()) {  // the check of the images tries it
    if (options.identity_classifier.empty() || is_of_preset(config, "identity_classifier")) return;
    problems.push_back(
        {"identity_model", "replaces the portrait classifier that identity_classifier names", "give one of them"});
    return;
  }
  if (const std::optional<Problem> unreadable = unreadable_photos(photos)) problems.push_back(*unreadable);
  try {
    if (!config.run.base.empty()) check_rendered(config.run.base, problems);
  } catch (const WeightError&) {
    // A base or a note that cannot be read is named by the check of the base.
  }
  const std::vector<Problem> unusable = readers.problems(options);
  problems.insert(problems.end(), unusable.begin(), unusable.end());
}

}  // namespace sdtune::train
