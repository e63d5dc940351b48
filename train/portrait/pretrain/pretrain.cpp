#include "train/portrait/pretrain/pretrain.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "model/core/device.h"
#include "model/core/tf32_scope.h"
#include "model/machine/compute_dtype.h"
#include "train/portrait/classifier/classifier_file.h"
#include "train/portrait/classifier/classifier_measurement.h"
#include "train/portrait/pretrain/base_design.h"
#include "train/portrait/pretrain/base_figures.h"
#include "train/portrait/pretrain/base_stage.h"
#include "train/portrait/pretrain/classifier_stage.h"
#include "train/portrait/pretrain/export_base.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/latent_pool.h"
#include "train/portrait/pretrain/prompt_curve.h"
#include "train/portrait/pretrain/stage.h"
#include "train/portrait/pretrain/starting_weights.h"
#include "train/portrait/pretrain/text_stage.h"
#include "train/portrait/pretrain/vae_stage.h"

namespace sdtune::train::pretrain {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kWarmupSteps = 300;
constexpr std::int64_t kCurveImages = 128;
// What a checkpoint was trained on that no option says: another version's would go on with other words or other noise.
constexpr const char* kCaptions = "three in ten short";
constexpr const char* kNoise = "zero terminal SNR";

PoolOptions pool_options(const PretrainOptions& options, const BaseDesign& design) {
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  PoolOptions pool;
  pool.folder = fs::path(options.output) / "pictures";
  pool.size = design.image_size;
  pool.detail = design.detail;
  pool.first = options.first_image;
  pool.count = options.num_images;
  if (pool.first % pool.views != 0) {
    throw ConfigError("first_image", "is not the first image of a person (got " + std::to_string(pool.first) +
                                         "; allowed: multiples of " + std::to_string(pool.views) + ")");
  }
  pool.threads = static_cast<int>(options.render_threads > 0 ? options.render_threads : cores);
  return pool;
}

class Pretraining {
 public:
  Pretraining(const PretrainOptions& options, const PretrainObserver& observer, const StopFlag& stop)
      : options_(options),
        observer_(observer),
        design_(BaseDesign::named(options.design)),
        device_(model::parse_device(options.device, "device")),
        dtype_(pretrain_dtype(
            model::choose_dtype(options.mixed_precision, device_, model::ComputeUse::kTrain, "mixed_precision"))),
        starting_hashes_(starting_hashes(options)) {
    limits_.stop = &stop;
    if (options.minutes) {
      const std::chrono::duration<double, std::ratio<60>> allowed(*options.minutes);
      limits_.deadline =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(allowed);
    }
  }

  PretrainResult run() {
    try {
      return run_stages();
    } catch (const WaitEnded&) {  // outside of a stage's steps
      return {ended_by_limits(), {}};
    }
  }

 private:
  PretrainResult run_stages() {
    const std::string note = model::unknown_processor_note(options_.mixed_precision, device_);
    if (!note.empty() && observer_.on_line) observer_.on_line("mixed_precision: " + note);
    if (options_.stage == "figures") return measure();
    start_rendering();
    if (options_.stage == "images") return render_images();
    if (options_.stage != "features") {
      bundle_ = starting_base(options_, design_, *pool_);
      bundle_->to(torch::kFloat32, device_);
    }
    const bool needs_vae = options_.stage == "vae" || !takes_over_earlier_stages();
    const bool needs_features = needs_vae && design_.perceptual_weight > 0;
    if (needs_features && takes_over_features()) {
      features_ = starting_classifier(options_, design_);
      freeze_features();
    } else if (options_.stage == "features" || needs_features) {
      const StageEnd features = train_features();
      if (features != StageEnd::kFinished || options_.stage == "features") return {features, {}};
    }
    if (needs_vae) {
      const StageEnd vae = train_vae();
      if (vae != StageEnd::kFinished) return {vae, {}};
      if (options_.stage == "vae") return {vae, takes_over_earlier_stages() ? export_model() : fs::path()};
    }
    for (const torch::Tensor& weight : bundle_->vae->parameters()) weight.set_requires_grad(false);
    if (options_.stage == "all" || options_.stage == "classifier") {
      const StageEnd classifier = train_classifier();
      if (classifier != StageEnd::kFinished || options_.stage == "classifier") return {classifier, {}};
    }
    if (options_.stage == "text" || !takes_over_earlier_stages()) {
      const StageEnd text = train_text();
      if (text != StageEnd::kFinished || options_.stage == "text") return {text, {}};
    }
    PretrainResult result = train_base();
    if (result.end == StageEnd::kFinished && options_.stage == "all") measure();
    return result;
  }

  // What needs no image starts none: a pool is a hundred thousand of them.
  void start_rendering() {
    pool_.emplace(real_file_system(), pool_options(options_, design_));
    pool_->limit_waits(limits_.stop, limits_.deadline);
  }

  StageEnd ended_by_limits() const { return limits_.stop->signal() != 0 ? StageEnd::kStopped : StageEnd::kOutOfTime; }

  PretrainResult render_images() {
    if (pool_->wait_for_all(*limits_.stop, limits_.deadline)) return {StageEnd::kFinished, {}};
    return {ended_by_limits(), {}};
  }

  // A stage that is named starts from initial_model, whose own earlier stages are finished.
  bool takes_over_earlier_stages() const { return !options_.initial_model.empty() && options_.stage != "all"; }

  // Of initial_classifier, unless the output has begun with features of its own.
  bool takes_over_features() const {
    return takes_over_earlier_stages() && options_.stage != "features" && !options_.initial_classifier.empty() &&
           !fs::exists(fs::path(options_.output) / "features");
  }

  StagePlan plan(const std::string& name, const StageOptions& stage) const {
    StagePlan plan;
    plan.folder = fs::path(options_.output) / name;
    plan.total_steps = stage.steps;
    plan.warmup_steps = kWarmupSteps;
    plan.checkpoint_steps = options_.checkpointing_steps;
    plan.optim.learning_rate = stage.learning_rate;
    plan.optim.adam_beta2 = 0.98;
    plan.device = device_;
    plan.dtype = dtype_;
    plan.on_line = observer_.on_line;
    // The names of options in checkpoints written before stay.
    plan.identity.settings = {{"design", options_.design},
                              {"seed", std::to_string(options_.seed)},
                              {"first_picture", std::to_string(options_.first_image)},
                              {"num_pictures", std::to_string(options_.num_images)},
                              {"mixed_precision", model::dtype_name(dtype_)},
                              {name + "_batch_size", std::to_string(stage.batch_size)},
                              {name + "_learning_rate", std::to_string(stage.learning_rate)}};
    plan.identity.settings.insert(starting_hashes_.begin(), starting_hashes_.end());
    return plan;
  }

  // The classifier of renders alone: the autoencoder is to keep what it sees, and is not there yet.
  StageEnd train_features() {
    features_ = starting_classifier(options_, design_);
    features_->to(device_);
    ClassifierStage stage("features", *pool_, features_, static_cast<std::uint64_t>(options_.seed), nullptr,
                          options_.features_images);
    StagePlan features = plan("features", options_.features);
    features.identity.settings["features_images"] = std::to_string(options_.features_images);
    StageLoop loop(stage, features, observer_.on_progress);
    const StageEnd end = loop.run(limits_);
    loop.settle();
    freeze_features();
    return end;
  }

  void freeze_features() {
    features_->to(device_);
    for (const torch::Tensor& weight : features_->parameters()) weight.set_requires_grad(false);
  }

  StageEnd train_vae() {
    VaeStageOptions stage_options;
    stage_options.seed = static_cast<std::uint64_t>(options_.seed);
    stage_options.batch_size = options_.vae.batch_size;
    stage_options.images = options_.vae_images.value_or(0);
    stage_options.head_weight = design_.vae_head_weight;
    stage_options.mark_weight = design_.vae_mark_weight;
    stage_options.perceptual_weight = design_.perceptual_weight;
    stage_options.adversarial_share = design_.adversarial_share;
    stage_options.adversarial_start = options_.vae_adversarial_start.value_or(options_.vae.steps / 2);
    VaeStage stage(
        bundle_->vae, *pool_, stage_options,
        [this](const torch::Tensor& images) { return features_->maps(images.to(torch::kFloat32)); },
        options_.vae_decoder_only ? frozen_vae() : nullptr);
    StagePlan vae = plan("vae", options_.vae);
    if (options_.vae_decoder_only) vae.identity.settings["vae_decoder_only"] = "true";
    // No option says these two: another version's checkpoint would go on with another loss.
    if (design_.vae_mark_weight != 1.0) {
      vae.identity.settings["vae_mark_weight"] = std::to_string(design_.vae_mark_weight);
    }
    if (features_ && takes_over_features()) vae.identity.settings["vae_features"] = "initial_classifier";
    if (options_.vae_images) vae.identity.settings["vae_images"] = std::to_string(*options_.vae_images);
    if (design_.adversarial_share > 0) {
      vae.identity.settings["vae_adversarial_start"] = std::to_string(stage_options.adversarial_start);
    }
    StageLoop loop(stage, vae, observer_.on_progress);
    const StageEnd end = loop.run(limits_);
    loop.settle();
    return end;
  }

  // As it is now, in the number format of the computation.
  model::AutoencoderKL frozen_vae() const {
    model::AutoencoderKL vae = with_scaling_factor(bundle_->vae, bundle_->vae->config().scaling_factor);
    vae->to(dtype_);
    return vae;
  }

  // What the VAE makes of images: the classifier must read those too.
  classifier::Reconstruct reconstruction() const {
    model::AutoencoderKL vae = frozen_vae();
    return [vae, dtype = dtype_](const torch::Tensor& images) mutable {
      const torch::NoGradGuard no_grad;
      return vae->decode(vae->encode(images.to(dtype)).mean).to(images.scalar_type());
    };
  }

  StageEnd train_classifier() {
    const fs::path folder = fs::path(options_.output) / "judge";
    // One of renders alone, where there is one, is what it starts from.
    classifier::ClassifierNetwork network = starting_classifier(options_, design_);
    if (features_) copy_weights(*features_, *network);
    network->to(device_);
    ClassifierStage stage("judge", *pool_, network, static_cast<std::uint64_t>(options_.seed), reconstruction());
    StageLoop loop(stage, plan("judge", options_.classifier), observer_.on_progress);
    const bool had_finished = loop.step() == options_.classifier.steps && fs::exists(folder / "model" / "judge.json");
    const StageEnd end = loop.run(limits_);
    loop.settle();
    network->eval();
    if (end == StageEnd::kFinished && !had_finished) measure_classifier(network, folder / "model");
    return end;
  }

  void measure_classifier(classifier::ClassifierNetwork& network, const fs::path& folder) {
    classifier::PortraitClassifier unmeasured(network, {});
    classifier::MeasurementOptions measurement;
    measurement.people = options_.figure_images / 2;
    measurement.threads = pool_options(options_, design_).threads;
    classifier::save_classifier(real_file_system(), folder, network,
                                classifier::measure_classifier(unmeasured, measurement));
  }

  StageEnd train_text() {
    TextStage stage(*bundle_, *pool_, static_cast<std::uint64_t>(options_.seed), options_.text.batch_size);
    StagePlan text = plan("text", options_.text);
    text.identity.settings["captions"] = kCaptions;
    StageLoop loop(stage, text, observer_.on_progress);
    const StageEnd end = loop.run(limits_);
    loop.settle();
    return end;
  }

  PretrainResult train_base() {
    LatentPool latents(real_file_system(), fs::path(options_.output) / "latents", bundle_->vae, *pool_);
    bundle_->vae = with_scaling_factor(bundle_->vae, latents.scaling_factor());
    BaseStageOptions stage_options;
    stage_options.seed = static_cast<std::uint64_t>(options_.seed);
    stage_options.batch_size = options_.base.batch_size;
    stage_options.objective.snr_gamma = options_.snr_gamma;
    stage_options.head_weight = options_.head_weight;
    BaseStage stage(*bundle_, *pool_, latents, stage_options);
    StagePlan base = plan("base", options_.base);
    base.average_decay = options_.base_average_decay;
    base.identity.settings["captions"] = kCaptions;
    base.identity.settings["noise"] = kNoise;
    base.identity.settings["base_average_decay"] = std::to_string(options_.base_average_decay);
    base.identity.settings["snr_gamma"] = options_.snr_gamma ? std::to_string(*options_.snr_gamma) : "none";
    base.identity.settings["head_weight"] = std::to_string(options_.head_weight);
    base.evaluation_steps = options_.evaluation_steps;
    StageLoop loop(stage, base, observer_.on_progress);
    std::optional<classifier::PortraitClassifier> classifier = find_classifier();
    std::optional<PromptCurve> curve;
    if (classifier) curve.emplace(*bundle_, *classifier, base.folder, std::min(kCurveImages, options_.figure_images));
    PretrainResult result;
    // A model to try, while this goes on for hours.
    loop.on_evaluation([&](std::int64_t step) {
      result.model_path = export_model();
      if (curve) tell_accuracy(step, curve->evaluate(step));
    });
    result.end = loop.run(limits_);
    loop.settle();
    result.model_path = export_model();
    return result;
  }

  fs::path export_model() const {
    const fs::path folder = fs::path(options_.output) / "model";
    export_base(real_file_system(), *bundle_, design_.preset, folder);
    return folder;
  }

  // Of the exported model, with the exported classifier: what others will have.
  PretrainResult measure() const {
    const fs::path folder(options_.output);
    const std::optional<classifier::PortraitClassifier> found = find_classifier();
    if (!found)
      throw ConfigError("stage", "figures need a portrait classifier, and there is none in " + folder.string(),
                        "train it first: --stage classifier");
    classifier::PortraitClassifier classifier = *found;
    model::ModelBundle bundle = model::load_bundle(folder / "model", torch::kFloat32, device_);
    FigureOptions figures;
    figures.renders = figures.prompts = options_.figure_images;
    figures.measurement.people = options_.figure_images / 2;
    figures.measurement.threads = pool_options(options_, design_).threads;
    write_file_atomically(real_file_system(), folder / "figures.json",
                          measure_base(bundle, classifier, figures).dump(2) + "\n");
    if (observer_.on_line) observer_.on_line("figures in " + (folder / "figures.json").string());
    return {StageEnd::kFinished, folder / "model"};
  }

  // The one that was trained here, else the one begun with. Without one the base is trained all the same, only not
  // watched.
  std::optional<classifier::PortraitClassifier> find_classifier() const {
    const fs::path folder = fs::path(options_.output) / "judge" / "model";
    if (fs::exists(folder / "judge.json")) return classifier::PortraitClassifier::load(folder, device_);
    if (!options_.initial_classifier.empty())
      return classifier::PortraitClassifier::load(options_.initial_classifier, device_);
    if (observer_.on_line)
      observer_.on_line("no portrait classifier in " + folder.string() + ": no curve of prompt accuracy");
    return std::nullopt;
  }

  void tell_accuracy(std::int64_t step, const PromptAccuracy& accuracy) const {
    if (!observer_.on_line) return;
    const auto percent = std::to_string(static_cast<int>(accuracy.mean * 100.0 + 0.5));
    observer_.on_line("base step " + std::to_string(step) + ": the portrait classifier finds " + percent +
                      " % of the prompts' attributes");
  }

  const PretrainOptions& options_;
  const PretrainObserver& observer_;
  BaseDesign design_;
  torch::Device device_;
  torch::Dtype dtype_;
  std::map<std::string, std::string> starting_hashes_;
  std::optional<ImagePool> pool_;                     // of the stages that read images
  std::optional<model::ModelBundle> bundle_;          // of those that train a part of the base
  classifier::ClassifierNetwork features_ = nullptr;  // of renders alone; null: not trained in this call
  StageLimits limits_;
};

}  // namespace

torch::Dtype pretrain_dtype(torch::Dtype chosen) {
  return chosen == torch::kFloat16 ? torch::kFloat32 : chosen;
}

PretrainResult pretrain(const PretrainOptions& options, const PretrainObserver& observer, const StopFlag& stop) {
  const model::Tf32Scope tf32(false);  // mixed_precision says what is rounded
  return Pretraining(options, observer, stop).run();
}

}  // namespace sdtune::train::pretrain
