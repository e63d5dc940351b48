// Which scheduler a pipeline runs: make_sampler of text_to_image.h.
#include <string>

#include "model/pipeline/text_to_image.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {
namespace {

// diffusers' StableDiffusionPipeline corrects two settings of old scheduler files when it is made, and it
// generates with the corrected ones; StableDiffusionXLPipeline does not.
void correct_outdated_settings(Json& config) {
  if (config.contains("steps_offset")) config["steps_offset"] = 1;
  if (config.contains("clip_sample")) config["clip_sample"] = false;
}

// The corrected settings are no defaults any more, for the class that they were corrected in.
void keep_corrected_settings(Json& config) {
  Json kept = Json::array();
  for (const Json& key : config.value("_use_default_values", Json::array())) {
    if (key != "steps_offset" && key != "clip_sample") kept.push_back(key);
  }
  config["_use_default_values"] = kept;
}

std::string file_of(const ModelBundle& bundle) {
  return (bundle.folder / "scheduler" / "scheduler_config.json").string();
}

}  // namespace

std::unique_ptr<Scheduler> make_sampler(const ModelBundle& bundle) {
  const std::string where = file_of(bundle);
  Json config = make_scheduler(bundle.scheduler_class, bundle.scheduler_config, where)->config();
  if (!bundle.is_xl()) {
    correct_outdated_settings(config);
    keep_corrected_settings(config);
  }
  return make_scheduler(bundle.scheduler_class, config, where);
}

std::unique_ptr<Scheduler> make_sampler(const ModelBundle& bundle, const std::string& class_name, const Json& changes) {
  Json config = given_keys(bundle.scheduler_config);
  // The defaults of DDIM and DDPM, which clip to -1 .. 1 and begin a step early, are for pixels.
  if (!config.contains("clip_sample") || !bundle.is_xl()) config["clip_sample"] = false;
  if (!bundle.is_xl()) config["steps_offset"] = 1;
  config.update(changes);
  return make_scheduler(class_name, config, file_of(bundle));
}

}  // namespace sdtune::model
