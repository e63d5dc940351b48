// The check of what looks at likeness need.
#include "model/base/hub_cache.h"
#include "model/base/model_note.h"
#include "train/data/concept_options.h"
#include "train/data/trigger.h"
#include "train/judge/judge_file.h"
#include "train/run/identity_reader.h"
#include "train/run/preflight_checks.h"
#include "train/run/rendered_base.h"

namespace sdtune::train {

namespace {

void check_judge(const IdentityOptions& options, std::vector<Problem>& problems) {
  const std::filesystem::path folder = identity_judge_folder(options);
  if (folder.empty()) {
    problems.push_back({"identity_judge", "is not given, and this installation has none", "name its folder"});
    return;
  }
  const judge::StoredJudge judge = judge::load_judge(folder);
  if (judge.figures.by_references.threshold > 0) return;
  problems.push_back(
      {folder.string(), "was never measured, so it has no threshold to accept by", "sdtune pretrain measures it"});
}

// A base of camera photos draws nothing that the judge was trained to read.
void check_rendered(const std::string& base, std::vector<Problem>& problems) {
  if (read_model_note(find_model_folder(base)).rendered_people) return;
  problems.push_back(
      {"identity_steps", "needs a base of rendered people, whom the judge can read (got " + base + ")",
       "give identity_model, or leave it out; validation_prompt and validation_data_dir watch any base"});
}

void check_triggers(const TrainConfig& config, std::vector<Problem>& problems) {
  if (!config.data.trigger_word.empty()) return;
  std::vector<Problem> reported_by_the_pictures;
  for (const ConceptOptions& subject : concepts_of(config.data, reported_by_the_pictures)) {
    if (!trigger_of(subject.instance_prompt, subject.class_prompt).empty()) continue;
    problems.push_back(
        {"identity_steps",
         "needs words that call the subject, and the class prompt has all of the instance prompt's (got \"" +
             subject.instance_prompt + "\")",
         "say \"a photo of sks person\", or give trigger_word"});
  }
}

}  // namespace

void check_identity(const TrainConfig& config, const std::vector<Photo>& photos, std::vector<Problem>& problems) {
  const IdentityOptions& options = config.identity;
  if (!options.identity_steps) {
    if (options.early_stop_patience) {
      problems.push_back({"early_stop_patience", "needs looks to be patient with", "give identity_steps as well"});
    }
    if (!options.identity_model.empty()) {
      problems.push_back({"identity_model", "needs looks to read", "give identity_steps as well"});
    }
    return;
  }
  check_triggers(config, problems);
  if (!options.identity_model.empty()) {  // the check of the pictures tries it
    if (options.identity_judge.empty()) return;
    problems.push_back(
        {"identity_model", "looks instead of the judge, and identity_judge names one", "give one of them"});
    return;
  }
  if (const std::optional<Problem> unreadable = unreadable_photos(photos)) problems.push_back(*unreadable);
  try {
    if (!config.run.base.empty()) check_rendered(config.run.base, problems);
    check_judge(options, problems);
  } catch (const WeightError& error) {
    // A base that cannot be read is named by the check of the base.
    for (const Problem& problem : error.problems()) {
      if (problem.where != "base") problems.push_back(problem);
    }
  }
}

}  // namespace sdtune::train
