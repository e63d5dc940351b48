#include "train/data/class_image_sets.h"

#include <algorithm>
#include <map>

namespace sdtune::train {

std::vector<ClassImageSet> class_image_sets(const std::vector<ConceptOptions>& concepts) {
  std::vector<ClassImageSet> sets;
  std::map<std::string, std::int64_t> prompts_in;  // folder -> prompts that it serves
  for (const ConceptOptions& subject : concepts) {
    const std::filesystem::path folder = subject.class_data_dir;
    const auto same = std::find_if(sets.begin(), sets.end(), [&](const ClassImageSet& set) {
      return set.prompt == subject.class_prompt && (set.folder == folder || set.folder.parent_path() == folder);
    });
    if (same != sets.end()) {
      same->count = std::max(same->count, subject.num_class_images);
      continue;
    }
    const std::int64_t number = ++prompts_in[folder.string()];
    sets.push_back(
        {subject.class_prompt, number == 1 ? folder : folder / std::to_string(number), subject.num_class_images});
  }
  return sets;
}

std::int64_t class_image_count(const std::vector<ConceptOptions>& concepts) {
  std::int64_t count = 0;
  for (const ClassImageSet& set : class_image_sets(concepts)) count += set.count;
  return count;
}

ClassImageSettings class_image_settings(const ClassImageSet& set, const DataOptions& options, std::uint64_t seed,
                                        const ClassImageBase& base) {
  Json sampler = Json::object();  // what decides an image besides model, prompt and seed
  sampler["scheduler"] = base.scheduler_class;
  sampler["scheduler_config"] = base.scheduler_config;
  sampler["steps"] = options.class_num_inference_steps;
  sampler["guidance_scale"] = options.class_guidance_scale.value();
  return {set.prompt, seed, base.hash, *options.resolution, std::move(sampler)};
}

}  // namespace sdtune::train
