#include "train/run/build_run.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "model/core/device.h"
#include "model/generate/generate_options.h"
#include "model/machine/compute_dtype.h"
#include "model/pipeline/init_image_latents.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/preset.h"
#include "train/config/resolve_options.h"
#include "train/config/total_steps.h"
#include "train/data/epoch_contents.h"
#include "train/objective/zero_terminal_snr.h"
#include "train/parameters/frozen_unet.h"
#include "train/parameters/starting_values.h"
#include "train/parameters/trainable_parameters.h"
#include "train/precision/compute_weight.h"
#include "train/precision/mixed_precision.h"
#include "train/prepare/generation_summary.h"
#include "train/prepare/prepare_data.h"
#include "train/resume/resume_fingerprint.h"
#include "train/run/memory_use.h"
#include "train/run/micro_batch.h"
#include "train/run/step_graphs.h"
#include "train/run/train_step.h"
#include "train/shard/shard_layout.h"

namespace sdtune::train {

namespace {

void keep_batch(Run& run, std::int64_t effective) {
  const std::string note = keep_effective_batch(run.config, run.group->world_size(), effective);
  if (!note.empty()) run.notes.push_back(note);
}

void resolve_steps(Run& run, std::int64_t effective) {
  RunOptions& options = run.config.run;
  const auto photos = static_cast<std::int64_t>(run.data.photos.photos.size());
  const TotalSteps total = total_steps(options, photos, run.data.plan->epoch_size(), effective);
  options.max_train_steps = run.total_steps = total.steps;
  if (!total.origin.empty()) run.config.origins["max_train_steps"] = total.origin;
  run.text_steps = text_encoder_steps(run.config.optim, run.total_steps);
}

// What an epoch consists of, among the lines that a run starts with.
void note_epoch(Run& run) {
  const auto class_images = static_cast<std::int64_t>(run.data.class_images.size());
  const BatchShape& shape = run.data.plan->shape();
  for (std::string& line : describe_epoch(run.data.photos.photos, class_images, shape)) {
    run.notes.push_back(std::move(line));
  }
  std::string captions = describe_auto_captions(run.data.photos.photos);
  if (!captions.empty()) run.notes.push_back(std::move(captions));
  std::vector<model::ImageSize> sizes;
  for (std::size_t i = 0; i < run.data.photos.photos.size(); ++i) {
    sizes.push_back(run.data.latents->size_of({0, 0, false, static_cast<std::int64_t>(i)}));
  }
  std::string buckets = describe_buckets(sizes, shape.effective());
  if (!buckets.empty()) run.notes.push_back(std::move(buckets));
}

void build_plan(Run& run) {
  const RunOptions& options = run.config.run;
  const BatchShape shape = {options.train_batch_size, options.gradient_accumulation_steps, run.group->world_size()};
  std::vector<std::int64_t> repeats;
  for (const Photo& photo : run.data.photos.photos) repeats.push_back(photo.repeats);
  run.data.plan =
      std::make_unique<BatchPlan>(static_cast<std::uint64_t>(options.seed), run.data.latents->photo_epoch(repeats),
                                  run.data.latents->class_epoch(), shape);
  note_epoch(run);
  const bool is_given = !options.micro_batch.empty() && options.micro_batch != "auto";  // auto: fitted at the end
  run.micro_batch = is_given ? std::stoll(options.micro_batch) : options.train_batch_size;
  resolve_steps(run, shape.effective());
}

std::vector<ModuleParameter> parameters_of(Run& run) {
  if (!run.is_lora()) return trainable_parameters(run.bundle, run.trains_text(), run.config.run.trainable_layers);
  run.dropout->seed = static_cast<std::uint64_t>(run.config.run.seed);
  return add_lora(run.bundle, run.config.lora, run.trains_text(), run.dropout->seed, run.dropout);
}

// Where a gradient is a sum of several, rounding each of them to half precision would make the result depend on how the
// batch is split. `auto` may split it at any step.
bool sums_in_float32(const Run& run) {
  if (run.config.precision.half_precision_gradient_sums) return false;
  const BatchShape& shape = run.data.plan->shape();
  const bool is_split =
      run.config.run.micro_batch == "auto" ? shape.batch_size > 1 : run.micro_batch < shape.batch_size;
  return is_split || shape.rounds > 1 || shape.ranks > 1;
}

// What steps do not use leaves the GPU: the autoencoder once latents are cached, the text encoders once prompts are.
void rest_unused_parts(Run& run) {
  if (!run.device.is_cuda()) return;
  std::vector<std::shared_ptr<torch::nn::Module>> parts;
  if (run.data.latents->cached()) parts.push_back(run.bundle.vae.ptr());
  if (!run.trains_text()) parts.push_back(run.bundle.text_encoder.ptr());
  if (!run.trains_text() && run.bundle.is_xl()) parts.push_back(run.bundle.text_encoder_2.ptr());
  if (!parts.empty()) run.resting = std::make_unique<RestingParts>(parts, run.device);
}

std::vector<std::int64_t> owners_of(const Run& run, const std::vector<ModuleParameter>& trained) {
  const std::int64_t ranks = run.group->world_size();
  if (ranks == 1 || run.config.dist.shard == "none") return {};
  return assign_owners(shard_costs(run.config.optim, trained, run.dtype != torch::kFloat32), ranks);
}

std::string mebibytes(std::int64_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20);
  return text.str();
}

// Masters start from the float32 weights, and only then do the modules get the compute dtype.
void build_optimizer(Run& run) {
  const std::vector<ModuleParameter> trained = parameters_of(run);
  std::vector<TrainedParameter> parameters;
  const std::vector<std::int64_t> owners = owners_of(run, trained);
  // A float32 run's weights are their own masters.
  std::vector<torch::Tensor> starts =
      run.dtype == torch::kFloat32 ? std::vector<torch::Tensor>(trained.size()) : starting_values(run.bundle, trained);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    parameters.push_back(
        {trained[i].name, trained[i].weight, torch::Tensor(), std::move(starts[i]), trained[i].rate_group});
  }
  for (const torch::Tensor& weight : run.bundle.unet->parameters()) to_compute_dtype(weight, run.dtype, run.device);
  for (const ModuleParameter& parameter : trained) to_compute_dtype(parameter.weight, run.dtype, run.device);
  run.bundle.text_encoder->to(run.dtype);
  if (run.bundle.is_xl()) run.bundle.text_encoder_2->to(run.dtype);
  freeze_all_but(run.bundle, trained);

  std::vector<NamedParameter> named;
  for (const TrainedParameter& parameter : parameters) named.push_back({parameter.name, parameter.weight});
  BucketOptions bucket_options;
  bucket_options.float32_gradients = sums_in_float32(run);
  bucket_options.owners = owners;
  bucket_options.frees_gradients = !owners.empty() && run.config.dist.shard == "gradients";
  bucket_options.sends_bfloat16 = run.config.dist.comm_hook == "bf16";
  bucket_options.memory_stays = run.config.run.cuda_graphs;
  run.buckets = std::make_unique<GradientBuckets>(std::move(named), *run.group, bucket_options);
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].gradient = run.buckets->gradient(i);
  run.shards = std::make_unique<Shards>(parameters, owners, *run.group);
  std::vector<TrainedParameter> own;
  for (const std::size_t index : run.shards->own()) own.push_back(std::move(parameters[index]));
  parameters.clear();
  run.optimizer = make_optimizer(std::move(own), run.config.optim, false, run.shards->optimizer_shard());
  const OptimOptions& optim = run.config.optim;
  if (optim.use_ema) {
    run.average = std::make_unique<WeightAverage>(*run.optimizer, optim.ema_decay, optim.offload_ema);
  }
  run.scaler = std::make_unique<GradScaler>(run.dtype == torch::kFloat16, run.device);
}

// lora_layers may leave out what train_text_encoder asks for, as a list made for another program's UNet does.
void warn_of_untrained_text(const Run& run, const std::vector<Observer*>& observers) {
  const std::vector<TrainedParameter>& trained = run.shards->parameters();
  const bool trains_any = std::any_of(trained.begin(), trained.end(), [](const TrainedParameter& parameter) {
    return parameter.rate_group == kTextGroup;
  });
  if (!run.trains_text() || trains_any) return;
  tell(observers, &Observer::on_warning,
       Problem{"lora_layers", "selects no layer of a text encoder, so train_text_encoder trains none",
               "add q_proj, k_proj, v_proj and out_proj, or leave train_text_encoder out"});
}

void build_rates(Run& run) {
  const BatchShape& shape = run.data.plan->shape();
  run.schedule = LrSchedule::from_options(run.config.optim, run.total_steps, shape.effective());
  run.base_rates = base_rates(run.config.optim, shape.effective());
  std::vector<double> rates;
  for (std::int64_t update = 0; update <= run.total_steps; ++update) {
    for (const double rate : run.base_rates) rates.push_back(rate * run.schedule.factor(update));
  }
  const torch::Tensor table = torch::tensor(rates, torch::kFloat64).view({run.total_steps + 1, -1});
  run.rates_by_update = table.to(run.device);
}

void build_loss(Run& run) {
  const std::vector<Problem> problems = zero_snr_problems(run.config.objective, run.bundle.scheduler_config);
  if (!problems.empty()) throw ConfigError(problems);
  if (run.config.objective.rescale_betas_zero_snr) {
    const std::string note = rescale_to_zero_snr(run.bundle);
    if (!note.empty()) run.notes.push_back(note);
  }
  const model::NoiseSchedule schedule = model::NoiseSchedule::from_config(run.bundle.scheduler_config);
  run.loss =
      std::make_unique<DiffusionLoss>(schedule.to(run.device), model::prediction_type_of(run.bundle.scheduler_config),
                                      run.config.objective, static_cast<std::uint64_t>(run.config.run.seed));
}

// The preflight compared what was there then; class images may have been generated since.
void resume_from(Run& run, const ResumePoint& resume) {
  const RunState& state = resume.state;
  const std::vector<Problem> changes =
      fingerprint_changes(completed_fingerprint(state.fingerprint, run.fingerprint), run.fingerprint);
  if (!changes.empty()) throw ConfigError(changes);
  load_optimizer(resume.checkpoint, state, *run.optimizer, run.shards->parameters());
  if (run.average) load_averages(resume.checkpoint, run.average->values());
  run.scaler->load(state.scaler);
  run.first_step = state.step;
  run.attempt = state.attempt + 1;
  run.last_checkpoint = resume.checkpoint;
}

void build_graphs(Run& run) {
  if (!run.config.run.cuda_graphs) return;
  const auto gradients = [&run] {
    std::vector<torch::Tensor> all;
    for (const TrainedParameter& parameter : run.shards->parameters()) all.push_back(parameter.gradient);
    return all;
  };
  run.graphs = std::make_shared<StepGraphs>(
      run.device, [&run](const StepInputs& inputs) { return compute_gradients(run, inputs); }, gradients);
}

// Where gradients are freed as soon as they are sent, it must be known before the first step which bucket is done when.
void learn_gradient_order(Run& run) {
  if (!run.buckets->frees_gradients()) return;
  probe_gradients(run);
  run.buckets->agree_on_order();
}

// What this rank keeps, and what all ranks keep together.
void note_shards(Run& run) {
  if (!run.shards->is_sharded()) return;
  std::vector<bool> is_own(run.shards->parameters().size());
  for (const std::size_t index : run.shards->own()) is_own[index] = true;
  std::int64_t own = 0, all = 0;
  for (std::size_t i = 0; i < is_own.size(); ++i) {
    const torch::Tensor& weight = run.shards->parameters()[i].weight;
    const std::int64_t bytes = kept_bytes(run.config.optim, weight.sizes(), run.dtype != torch::kFloat32);
    all += bytes;
    if (is_own[i]) own += bytes;
  }
  run.notes.push_back("shard: " + run.config.dist.shard + ": " + mebibytes(own) +
                      " MiB of optimizer states on this rank, of " + mebibytes(all) + " MiB");
}

// What the device decides where no option does.
TrainConfig resolve_for_device(TrainConfig config, torch::Device device, const ResumePoint& resume) {
  std::string& precision = config.precision.mixed_precision;
  const std::string recorded = recorded_value(resume, "mixed_precision");
  if (is_left_to_device(precision)) {
    config.origins["mixed_precision"] = recorded.empty() ? "the device" : "the checkpoint";
  }
  precision = resolve_mixed_precision(precision, device, recorded);
  if (config.run.micro_batch.empty() && device.is_cuda() && config.run.train_batch_size > 1) {
    config.run.micro_batch = "auto";
    config.origins["micro_batch"] = "the device";
  }
  return config;
}

// A GPU prepares in the format that it trains in, so that its memory never holds the model in float32. A CPU encodes
// and generates class images in float32.
torch::Dtype preparation_dtype(torch::Device device, torch::Dtype dtype) {
  return device.is_cuda() ? dtype : torch::kFloat32;
}

std::unique_ptr<Run> load_run(const TrainConfig& config, std::shared_ptr<ProcessGroup> group, torch::Device device,
                              const Preflight& preflight, const std::vector<Observer*>& observers) {
  const std::filesystem::path base = model::find_base(config.run.base);
  tell(observers, &Observer::on_preparation, PreparationEvent{preset_line(config), generation_summary(config)});
  tell_phase(observers, "loading " + config.run.base, 0, 0);
  TrainConfig resolved = resolve_for_device(config, device, preflight.resume);
  const torch::Dtype dtype = model::parse_dtype(resolved.precision.mixed_precision, "mixed_precision");
  auto run = std::make_unique<Run>(model::load_bundle(base, preparation_dtype(device, dtype), device));
  model::prepare_vae(run->bundle);
  run->bundle.vae->set_tiling(config.data.vae_tiling);
  run->config = std::move(resolved);
  run->dtype = dtype;
  run->folder = run_folder(config);
  run->group = std::move(group);
  run->device = device;
  const std::string& known = preflight.resume.base_hash;
  run->fingerprint.base_hash = known.empty() ? hash_of_base(base) : known;
  return run;
}

// Everything that does not need to know the trainable parameters.
void prepare_run(Run& run, const Preflight& preflight, const std::vector<Observer*>& observers, const StopFlag& stop) {
  resolve_options(run.config, {run.bundle.resolution(), model::default_guidance_scale(run.bundle.is_xl())},
                  recorded_value(preflight.resume, "class_guidance_scale"));
  freeze_all_but(run.bundle, {});
  std::vector<std::string> notes = prepare_data({run.config, run.folder, run.bundle, *run.group, run.device,
                                                 run.fingerprint.base_hash, preflight, observers, stop},
                                                run.data);
  run.notes.insert(run.notes.end(), notes.begin(), notes.end());
  build_plan(run);
}

}  // namespace

std::unique_ptr<Run> build_prepared_run(const TrainConfig& config, std::shared_ptr<ProcessGroup> group,
                                        torch::Device device, const Preflight& preflight,
                                        const std::vector<Observer*>& observers, const StopFlag& stop) {
  std::unique_ptr<Run> run = load_run(config, std::move(group), device, preflight, observers);
  prepare_run(*run, preflight, observers, stop);
  return run;
}

std::unique_ptr<Run> build_run(const TrainConfig& config, std::shared_ptr<ProcessGroup> group, torch::Device device,
                               const Preflight& preflight, const std::vector<Observer*>& observers,
                               const StopFlag& stop) {
  std::unique_ptr<Run> run = load_run(config, std::move(group), device, preflight, observers);
  run->stops = std::make_unique<StopAgreement>(*run->group, stop, device);
  run->times = std::make_unique<StepTimes>(*run->group, device);
  const bool resumes = !preflight.resume.checkpoint.empty();
  if (resumes) keep_batch(*run, preflight.resume.state.effective_batch);
  prepare_run(*run, preflight, observers, stop);
  rest_unused_parts(*run);
  give_back_memory();
  run->fingerprint.settings = fingerprint_settings(run->config);
  run->fingerprint.images =
      fingerprint_images(run->data.photos.photos, run->data.class_images, config.objective.masked_loss);
  build_optimizer(*run);
  warn_of_untrained_text(*run, observers);
  if (config.objective.dco_beta) run->base_unet = frozen_copy(run->bundle.unet);
  build_rates(*run);
  build_loss(*run);
  run->bundle.unet->set_gradient_checkpointing(config.run.gradient_checkpointing);
  if (run->trains_text()) {
    run->bundle.text_encoder->set_gradient_checkpointing(config.run.gradient_checkpointing);
    if (run->bundle.is_xl()) run->bundle.text_encoder_2->set_gradient_checkpointing(config.run.gradient_checkpointing);
  }
  if (resumes) resume_from(*run, preflight.resume);
  give_back_memory();  // of the float32 weights: what waits then for the steps' tensors is no more than they need
  run->uses_chunks = computes_in_chunks(*run);
  run->group->barrier();  // ranks load and encode at different speeds, and what follows waits only for a while
  if (run->config.run.micro_batch == "auto") fit_micro_batch(*run);
  learn_gradient_order(*run);
  build_graphs(*run);
  note_shards(*run);
  return run;
}

RunSummary summarize(const Run& run) {
  RunSummary summary;
  summary.output = run.folder.root;
  summary.base = run.config.run.base;
  summary.pipeline_class = run.bundle.pipeline_class;
  summary.method = run.config.run.method;
  summary.components = trainable_components(run.bundle, run.trains_text());
  for (const TrainedParameter& parameter : run.shards->parameters()) {
    summary.trainable_parameters += parameter.weight.numel();
  }
  summary.total_parameters = count_parameters(run.bundle);
  summary.device = run.device.str();
  summary.device_name = model::describe_device(run.device);
  summary.dtype = model::dtype_name(run.dtype);
  summary.images = static_cast<std::int64_t>(run.data.photos.photos.size());
  summary.left_out = static_cast<std::int64_t>(run.data.photos.left_out.size() + run.data.photos.bad.size());
  summary.class_images = static_cast<std::int64_t>(run.data.class_images.size());
  summary.resolution = *run.config.data.resolution;
  summary.batch = run.data.plan->shape().effective();
  summary.ranks = run.group->world_size();
  summary.seed = static_cast<std::uint64_t>(run.config.run.seed);
  summary.first_step = run.first_step;
  summary.total_steps = run.total_steps;
  summary.attempt = run.attempt;
  summary.notes = run.notes;
  return summary;
}

}  // namespace sdtune::train
