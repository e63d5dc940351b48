// Which scheduler a pipeline runs: make_sampler of text_to_image.h.
#include <algorithm>
#include <string>

#include "model/pipeline/text_to_image.h"

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

}  // namespace

std::unique_ptr<Scheduler> make_sampler(const ModelBundle& bundle, const std::string& class_name) {
  const std::string where = (bundle.folder / "scheduler" / "scheduler_config.json").string();
  const std::string name = class_name.empty() ? bundle.scheduler_class : class_name;
  const std::vector<std::string>& known = scheduler_class_names();
  const bool is_known = std::find(known.begin(), known.end(), bundle.scheduler_class) != known.end();
  Json config = is_known ? make_scheduler(bundle.scheduler_class, bundle.scheduler_config, where)->config()
                         : bundle.scheduler_config;
  if (!bundle.is_xl()) {
    correct_outdated_settings(config);
    if (name == bundle.scheduler_class) keep_corrected_settings(config);
  }
  return make_scheduler(name, config, where);
}

}  // namespace sdtune::model
