#include "train/plan/run_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "model/core/device.h"
#include "model/files/install_paths.h"
#include "model/generate/generate_options.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "model/single_file/published_configs.h"
#include "train/config/concept_options.h"
#include "train/config/run_folder.h"
#include "train/config/total_steps.h"
#include "train/data/class_image_sets.h"
#include "train/data/photo_set.h"
#include "train/precision/mixed_precision.h"
#include "train/preflight/preflight_checks.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train {
namespace {

model::BundleConfigs configs_of(const PlanRequest& request) {
  static const std::map<std::string, std::pair<model::ModelFamily, std::string>> kPublished = {
      {"sd15", {model::ModelFamily::kSd1, "epsilon"}},
      {"sd21", {model::ModelFamily::kSd2, "v_prediction"}},
      {"sdxl", {model::ModelFamily::kSdxl, "epsilon"}}};
  if (request.family.empty()) return model::BundleConfigs::read(model::find_base(request.config.run.base));
  const auto found = kPublished.find(request.family);
  if (found == kPublished.end()) {
    throw ConfigError("family", "is unknown (got " + request.family + "; allowed: sd15, sd21, sdxl)");
  }
  // The vocabulary decides no size: the published text encoders have CLIP's in any case.
  const std::filesystem::path bundled = find_bundled_base();
  if (bundled.empty()) throw ConfigError("family", "needs the bundled base's tokenizer, which this installation lacks");
  return model::published_configs(found->second.first, found->second.second, bundled / "tokenizer");
}

void count_photos(const PlanRequest& request, PlannedRun& run) {
  const DataOptions& data = request.config.data;
  if (request.photos) {
    run.photos = run.epoch_photos = *request.photos;
    return;
  }
  if (data.images.empty() && data.concepts.empty()) {
    throw ConfigError("images", "is not given", "name the folder: --images DIR, or say how many: --photos N");
  }
  const PhotoFolder found = scan_photos(concepts_of(data), data);
  if (!found.bad.empty() && data.on_bad_image == "stop") throw DataError(found.bad);
  run.photos = static_cast<std::int64_t>(found.photos.size());
  for (const Photo& photo : found.photos) run.epoch_photos += photo.repeats;
}

// The hash of the base's files, which may be gigabytes: read once, and only where it is asked for.
class BaseHash {
 public:
  explicit BaseHash(const PlanRequest& request) : request_(request) {}
  bool has_base() const { return request_.family.empty(); }  // a published model's files are not here
  const std::string& text() {
    if (text_.empty()) text_ = hash_of_base(model::find_base(request_.config.run.base));
    return text_;
  }

 private:
  const PlanRequest& request_;
  std::string text_;
};

// As training finds them: what an earlier run has generated with the same settings is used again.
std::int64_t missing_class_images(const ClassImageSet& set, const PlannedRun& run, const model::ModelBundle& bundle,
                                  BaseHash& hash) {
  if (!hash.has_base() || !has_generated_class_images(set.folder)) {
    return std::max<std::int64_t>(0, set.count - std::ssize(own_class_images(set.folder)));
  }
  DataOptions data = run.config.data;
  if (!data.class_guidance_scale) data.class_guidance_scale = model::default_guidance_scale(bundle.is_xl());
  const auto seed = static_cast<std::uint64_t>(run.config.run.seed);
  const ClassImageSettings settings =
      class_image_settings(set, data, seed, {hash.text(), bundle.scheduler_class, bundle.scheduler_config});
  return std::ssize(plan_class_images(set.folder, set.count, settings).missing);
}

void count_class_images(PlannedRun& run, const model::ModelBundle& bundle, BaseHash& hash) {
  DataOptions data = run.config.data;
  if (data.class_data_dir.empty()) data.class_data_dir = run_folder(run.config).class_images().string();
  run.class_images = run.generated_class_images = 0;
  for (const ClassImageSet& set : class_image_sets(concepts_of(data))) {
    run.class_images += set.count;
    run.generated_class_images += missing_class_images(set, run, bundle, hash);
  }
}

PlannedRun planned_run(const PlanRequest& request, const model::ModelBundle& bundle, BaseHash& hash) {
  PlannedRun run;
  run.config = request.config;
  run.model = request.family.empty() ? request.config.run.base : request.family;
  if (!run.config.data.resolution) {
    run.config.data.resolution = bundle.resolution();
  }
  if (*run.config.data.resolution % bundle.vae_factor() != 0) {
    throw ConfigError("resolution", "must be a multiple of the VAE's downscaling (got " +
                                        std::to_string(*run.config.data.resolution) + "; allowed: multiples of " +
                                        std::to_string(bundle.vae_factor()) + ")");
  }
  count_photos(request, run);
  const RunOptions& options = run.config.run;
  run.ranks = request.ranks;
  run.batch = options.train_batch_size * options.gradient_accumulation_steps * run.ranks;
  run.total_steps = total_steps(options, run.photos, run.epoch_photos, run.batch).steps;
  if (run.config.data.with_prior_preservation) {
    run.class_images = run.generated_class_images = run.config.data.num_class_images;
    if (!request.photos) count_class_images(run, bundle, hash);
  }
  run.total_parameters = count_parameters(bundle);
  return run;
}

// `auto` is planned as the whole batch: what fits is found by a real step.
TrainedBatch trained_batch(const PlannedRun& run, const model::ModelBundle& bundle) {
  const RunOptions& options = run.config.run;
  const bool is_number = !options.micro_batch.empty() && options.micro_batch != "auto";
  const std::int64_t photos = is_number ? std::stoll(options.micro_batch) : options.train_batch_size;
  TrainedBatch batch;
  batch.photos = photos;
  batch.samples = run.config.data.with_prior_preservation ? 2 * photos : photos;
  const bool is_split =
      is_number ? photos < options.train_batch_size : options.micro_batch == "auto" && options.train_batch_size > 1;
  batch.sums_in_float32 = !run.config.precision.half_precision_gradient_sums &&
                          (is_split || options.gradient_accumulation_steps > 1 || run.ranks > 1);
  const bool is_fitted = options.micro_batch.empty() && options.train_batch_size > 1;  // build_run makes it auto
  batch.gpu_sums_in_float32 =
      batch.sums_in_float32 || (is_fitted && !run.config.precision.half_precision_gradient_sums);
  batch.height = batch.width = *run.config.data.resolution / bundle.vae_factor();
  batch.recomputed = options.gradient_checkpointing;
  batch.ranks = run.ranks;
  return batch;
}

// Without the text encoders.
double flops_of(const PassCost& cost) {
  return cost.flops + cost.attention_flops;
}

PlannedWork planned_work(const PlannedRun& run, const TrainedBatch& batch, const RunPasses& passes) {
  PlannedWork work;
  const double samples = static_cast<double>(run.batch) * (run.config.data.with_prior_preservation ? 2.0 : 1.0);
  const double of_text = run.config.run.train_text_encoder ? passes.training.text_flops : 0;  // else it is cached
  work.step =
      (flops_of(passes.training) + of_text + flops_of(passes.base)) * samples / static_cast<double>(batch.samples);
  for (std::size_t i = 0; i < passes.generations.size(); ++i) {
    const Generation& generation = passes.generations[i];
    const auto count =
        static_cast<double>(count_generated(generation, run.config, run.generated_class_images, run.total_steps));
    const double call = flops_of(passes.denoising[i]) / static_cast<double>(generation.at_once);
    const double work_of_it = count * (static_cast<double>(generation.steps) * call + flops_of(passes.decoding));
    (generation.in_training ? work.evaluation_images : work.class_images) += work_of_it;
  }
  if (run.config.data.caches_latents()) {
    work.encoding = static_cast<double>(run.photos + run.class_images) * flops_of(passes.encoding);
  } else {
    work.step += samples * flops_of(passes.encoding);
  }
  work.total =
      work.step * static_cast<double>(run.total_steps) + work.class_images + work.evaluation_images + work.encoding;
  return work;
}

// One after the other: smaller micro-batches, recomputation, 8-bit states. What the run has already is left out.
std::vector<Saving> find_savings(TrainConfig config, ModelTrace& trace, TrainedBatch batch) {
  std::vector<Saving> savings;
  std::string said;
  const auto add = [&](const std::string& option) {
    said += (said.empty() ? "" : " and ") + option;
    const RunPasses passes = trace_passes(config, trace, batch);
    savings.push_back({said, plan_memory(config, trace, batch, passes, false).highest().bytes(),
                       plan_memory(config, trace, batch, passes, true).highest().bytes()});
  };
  const std::int64_t one = config.data.with_prior_preservation ? 2 : 1;
  if (batch.samples > one) {
    batch.photos = 1;
    batch.samples = one;
    batch.sums_in_float32 = batch.gpu_sums_in_float32 = !config.precision.half_precision_gradient_sums;
    add("micro_batch: 1");
  }
  if (!batch.recomputed) {
    batch.recomputed = true;
    add("gradient_checkpointing");
  }
  if (config.optim.chosen_optimizer() == "adamw") {
    config.optim.use_8bit_adam = true;
    add("use_8bit_adam");
  }
  return savings;
}

// All but the program's own memory.
RunPlan traced_plan(const PlanRequest& request, bool of_this_cpu, BaseHash& hash) {
  model::ModelBundle bundle = model::empty_bundle(configs_of(request), {});
  RunPlan plan;
  plan.run = planned_run(request, bundle, hash);
  const TrainedBatch batch = trained_batch(plan.run, bundle);
  ModelTrace trace(plan.run.config, std::move(bundle), of_this_cpu);
  for (const ModuleParameter& parameter : trace.trained()) plan.run.trainable_parameters += parameter.weight.numel();
  const RunPasses passes = trace_passes(plan.run.config, trace, batch);
  plan.work = planned_work(plan.run, batch, passes);
  plan.on_cpu = plan_memory(plan.run.config, trace, batch, passes, false);
  plan.on_gpu = plan_memory(plan.run.config, trace, batch, passes, true);
  plan.activations = activations_by_part(passes.training);
  if (request.find_savings) plan.savings = find_savings(plan.run.config, trace, batch);
  return plan;
}

// With the program's own memory, measured before another trace leaves more of it.
RunPlan traced_plan(PlanRequest request, const std::string& precision, bool of_this_cpu, BaseHash& hash) {
  request.config.precision.mixed_precision = precision;
  RunPlan plan = traced_plan(request, of_this_cpu, hash);
  const MemoryPart cpu = program_on_cpu(), gpu = program_on_gpu();
  plan.on_cpu.add_program(cpu);
  plan.on_gpu.add_program(gpu);
  for (Saving& saving : plan.savings) {
    saving.cpu_bytes += cpu.bytes;
    saving.gpu_bytes += gpu.bytes;
  }
  return plan;
}

// The part of a GPU, which is the same on every machine, and that of this machine's CPU where the run could go there,
// each with a trace of its own. A mixed_precision that is left to the device is bf16 on the GPUs of the price table.
RunPlan plan_of_devices(const PlanRequest& request) {
  const std::string& asked = request.config.precision.mixed_precision;
  const bool is_for_cpu = request.config.run.device == "cpu";
  const std::string of_cpu = resolve_mixed_precision(asked, torch::kCPU, "");
  const bool is_left_open = is_left_to_device(asked) && !is_for_cpu;
  BaseHash hash(request);
  RunPlan plan = traced_plan(request, is_left_open ? "bf16" : of_cpu, false, hash);
  if (!request.family.empty() || (!is_for_cpu && model::has_usable_gpu())) return plan;
  const RunPlan here = traced_plan(request, of_cpu, true, hash);
  if (is_left_open) plan.run.cpu_precision = of_cpu;
  plan.on_cpu = here.on_cpu;
  plan.activations = here.activations;
  for (std::size_t i = 0; i < plan.savings.size(); ++i) plan.savings[i].cpu_bytes = here.savings.at(i).cpu_bytes;
  return plan;
}

}  // namespace

double PlannedRun::epochs() const {
  return static_cast<double>(total_steps * batch) / static_cast<double>(std::max<std::int64_t>(1, epoch_photos));
}

RunPlan plan_run(const PlanRequest& request) {
  std::vector<Problem> problems;
  check_contradictions(request.config, problems);
  if (!problems.empty()) throw ConfigError(problems);
  return plan_of_devices(request);
}

}  // namespace sdtune::train
