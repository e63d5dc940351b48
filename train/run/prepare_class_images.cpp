#include "train/run/prepare_class_images.h"

#include <algorithm>
#include <map>
#include <optional>

#include "train/data/class_images.h"
#include "train/run/draw_pictures.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace {

// The class pictures of one prompt.
struct ClassSet {
  std::string prompt;
  std::filesystem::path folder;
  std::int64_t count = 0;
};

std::vector<ClassSet> class_sets(const std::vector<ConceptOptions>& concepts) {
  std::vector<ClassSet> sets;
  std::map<std::string, std::int64_t> prompts_in;  // folder -> prompts that it serves
  for (const ConceptOptions& subject : concepts) {
    const std::filesystem::path folder = subject.class_data_dir;
    const auto same = std::find_if(sets.begin(), sets.end(), [&](const ClassSet& set) {
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

void prepare_set(Run& run, const ClassSet& set, std::vector<ClassPicture>& result,
                 const std::vector<Observer*>& observers, const StopFlag& stop) {
  const DataOptions& options = run.config.data;
  const PictureSettings pictures = {set.prompt, std::nullopt, options.class_num_inference_steps,
                                    options.class_guidance_scale, *options.resolution};
  const ClassImageSettings settings = {set.prompt, static_cast<std::uint64_t>(run.config.run.seed),
                                       run.identity.base_hash, *options.resolution,
                                       sampler_description(run.bundle, pictures)};
  const ClassImagePlan plan = plan_class_images(set.folder, set.count, settings);
  run.group->barrier();  // all ranks have seen the same folder before any writes into it
  if (!plan.missing.empty()) {
    const RankShare share = {run.group->rank(), run.group->world_size(), options.sample_batch_size};
    draw_class_images(
        real_file_system(), plan, settings, share,
        [&](const std::vector<std::uint64_t>& seeds) {
          stop_if_asked(stop);
          std::vector<Image> drawn = draw_pictures(run.bundle, pictures, seeds, stop);
          if (drawn.empty()) stop_if_asked(stop);
          return drawn;
        },
        [&](std::int64_t done, std::int64_t total) { tell_phase(observers, "drawing class pictures", done, total); });
  }
  run.group->barrier();
  if (run.group->is_first() && !plan.missing.empty()) {
    write_class_manifest(real_file_system(), set.folder, plan, settings);
  }
  for (const std::filesystem::path& file : plan.files) result.push_back({file, set.prompt});
}

}  // namespace

std::int64_t class_image_count(const std::vector<ConceptOptions>& concepts) {
  std::int64_t count = 0;
  for (const ClassSet& set : class_sets(concepts)) count += set.count;
  return count;
}

std::vector<ClassPicture> prepare_class_images(Run& run, const std::vector<ConceptOptions>& concepts,
                                               const std::vector<Observer*>& observers, const StopFlag& stop) {
  std::vector<ClassPicture> pictures;
  if (!run.has_prior()) return pictures;
  for (const ClassSet& set : class_sets(concepts)) prepare_set(run, set, pictures, observers, stop);
  return pictures;
}

}  // namespace sdtune::train
