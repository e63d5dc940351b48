#include "train/prepare/prepare_class_images.h"

#include <algorithm>

#include "model/core/image_tensor.h"
#include "model/generate/image_generator.h"
#include "train/data/class_image_sets.h"
#include "train/dist/stop_request.h"
#include "train/prepare/generation_time.h"
#include "train/prepare/shared_class_images.h"

namespace sdtune::train {

namespace {

model::GenerateOptions class_image_options(const DataOptions& options) {
  model::GenerateOptions images;
  images.prompt_syntax = "plain";
  images.steps = options.class_num_inference_steps;
  images.guidance_scale = options.class_guidance_scale;
  images.width = images.height = *options.resolution;
  return images;
}

// Before minutes or hours begin.
void tell_time(const PrepareContext& context, const std::string& prompt, std::int64_t missing) {
  const std::int64_t ranks = context.group.world_size();
  const std::int64_t own = (missing + ranks - 1) / ranks;
  const std::int64_t batch = std::min(context.config.data.sample_batch_size, own);
  const double seconds =
      seconds_per_batch(context.bundle, class_image_options(context.config.data), prompt, batch, context.stop);
  stop_if_requested(context.stop);
  const std::int64_t batches = (own + batch - 1) / batch;
  tell(context.observers, &Observer::on_generation, GenerationEvent{missing, seconds * static_cast<double>(batches)});
}

void prepare_set(const PrepareContext& context, const ClassImageSet& set, std::vector<ClassImage>& result) {
  const DataOptions& options = context.config.data;
  const ClassImageBase base = {context.base_hash, context.bundle.scheduler_class, context.bundle.scheduler_config};
  const ClassImageSettings settings =
      class_image_settings(set, options, static_cast<std::uint64_t>(context.config.run.seed), base);
  const ClassImagePlan plan = shared_plan(context.group, set, settings);
  if (!plan.missing.empty()) {
    if (context.group.is_first()) tell_time(context, set.prompt, std::ssize(plan.missing));
    const RankShare share = {context.group.rank(), context.group.world_size(), options.sample_batch_size};
    generate_class_images(
        real_file_system(), plan, settings, share,
        [&](const std::vector<std::uint64_t>& seeds) {
          stop_if_requested(context.stop);
          const torch::Tensor images =
              model::ImageGenerator(context.bundle)
                  .generate(class_image_options(options), std::vector<std::string>(seeds.size(), set.prompt), seeds,
                            {.stop = &context.stop.requested()});
          if (!images.defined()) stop_if_requested(context.stop);
          return model::tensor_to_images(images);
        },
        [&](std::int64_t done, std::int64_t total) {
          tell_phase(context.observers, "generating class images", done, total);
        });
  }
  context.group.barrier();  // the shares differ in length
  share_class_images(context.group, plan,
                     {context.device, set.folder, set.folder,
                      std::chrono::duration<double>(context.config.dist.peer_timeout), &context.stop});
  if (context.group.is_first() && !plan.missing.empty()) {
    write_class_manifest(real_file_system(), set.folder, plan, settings);
  }
  for (const std::filesystem::path& file : plan.files) result.push_back({file, set.prompt});
}

}  // namespace

std::vector<ClassImage> prepare_class_images(const PrepareContext& context,
                                             const std::vector<ConceptOptions>& concepts) {
  std::vector<ClassImage> images;
  if (!context.config.data.with_prior_preservation) return images;
  for (const ClassImageSet& set : class_image_sets(concepts)) prepare_set(context, set, images);
  return images;
}

}  // namespace sdtune::train
