#include "train/pretrain/pretrain.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "model/core/device.h"
#include "train/judge/judge_file.h"
#include "train/judge/judge_measurement.h"
#include "train/pretrain/base_design.h"
#include "train/pretrain/base_figures.h"
#include "train/pretrain/base_stage.h"
#include "train/pretrain/export_base.h"
#include "train/pretrain/judge_stage.h"
#include "train/pretrain/latent_pool.h"
#include "train/pretrain/picture_pool.h"
#include "train/pretrain/prompt_curve.h"
#include "train/pretrain/starting_weights.h"
#include "train/pretrain/text_stage.h"
#include "train/pretrain/vae_stage.h"

namespace sdtune::train::pretrain {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kWarmupSteps = 300;
constexpr std::int64_t kCurvePictures = 128;
// What a checkpoint was trained on that no option says: another version's would go on with other words or other noise.
constexpr const char* kCaptions = "three in ten short";
constexpr const char* kNoise = "zero terminal SNR";

torch::Dtype compute_dtype(const PretrainOptions& options, torch::Device device) {
  if (options.mixed_precision == "auto") return device.is_cuda() ? torch::kBFloat16 : torch::kFloat32;
  return model::parse_dtype(options.mixed_precision, "mixed_precision");
}

PoolOptions pool_options(const PretrainOptions& options, const BaseDesign& design) {
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  PoolOptions pool;
  pool.folder = fs::path(options.output) / "pictures";
  pool.size = design.picture_size;
  pool.first = options.first_picture;
  pool.count = options.num_pictures;
  if (pool.first % pool.views != 0) {
    throw ConfigError("first_picture", "begins within a person's pictures (got " + std::to_string(pool.first) +
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
        dtype_(compute_dtype(options, device_)),
        starting_hashes_(starting_hashes(options)),
        pool_(real_file_system(), pool_options(options, design_)),
        bundle_(starting_base(options, design_, pool_)) {
    limits_.stop = &stop;
    if (options.minutes) {
      const std::chrono::duration<double, std::ratio<60>> allowed(*options.minutes);
      limits_.deadline =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(allowed);
    }
    bundle_.to(torch::kFloat32, device_);
  }

  PretrainResult run() {
    if (options_.stage == "figures") return measure();
    if (options_.stage == "vae" || !takes_over_earlier_stages()) {
      const StageEnd vae = train_vae();
      if (vae != StageEnd::kFinished || options_.stage == "vae") return {vae, {}};
    }
    for (torch::Tensor weight : bundle_.vae->parameters()) weight.set_requires_grad(false);
    if (options_.stage == "all" || options_.stage == "judge") {
      const StageEnd judge = train_judge();
      if (judge != StageEnd::kFinished || options_.stage == "judge") return {judge, {}};
    }
    if (options_.stage == "text" || !takes_over_earlier_stages()) {
      const StageEnd text = train_text();
      if (text != StageEnd::kFinished || options_.stage == "text") return {text, {}};
    }
    PretrainResult result = train_base();
    if (result.end == StageEnd::kFinished && options_.stage == "all") measure();
    return result;
  }

 private:
  // A stage asked for by its name goes on from initial_model, whose own earlier stages are over.
  bool takes_over_earlier_stages() const { return !options_.initial_model.empty() && options_.stage != "all"; }

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
    plan.identity.settings = {{"design", options_.design},
                              {"seed", std::to_string(options_.seed)},
                              {"first_picture", std::to_string(options_.first_picture)},
                              {"num_pictures", std::to_string(options_.num_pictures)},
                              {"mixed_precision", model::dtype_name(dtype_)},
                              {name + "_batch_size", std::to_string(stage.batch_size)},
                              {name + "_learning_rate", std::to_string(stage.learning_rate)}};
    plan.identity.settings.insert(starting_hashes_.begin(), starting_hashes_.end());
    return plan;
  }

  StageEnd train_vae() {
    VaeStage stage(bundle_.vae, pool_, static_cast<std::uint64_t>(options_.seed), options_.vae.batch_size);
    StageLoop loop(stage, plan("vae", options_.vae), observer_.on_progress);
    const StageEnd end = loop.run(limits_);
    loop.settle();
    return end;
  }

  // What the VAE makes of pictures: the judge must read those too.
  torch::Tensor reconstruct(const torch::Tensor& pictures) {
    const torch::NoGradGuard no_grad;
    return bundle_.vae->decode(bundle_.vae->encode(pictures.to(torch::kFloat32)).mean);
  }

  StageEnd train_judge() {
    const fs::path folder = fs::path(options_.output) / "judge";
    judge::JudgeNetwork network = starting_judge(options_);
    network->to(device_);
    JudgeStage stage(pool_, network, static_cast<std::uint64_t>(options_.seed),
                     [this](const torch::Tensor& pictures) { return reconstruct(pictures); });
    StageLoop loop(stage, plan("judge", options_.judge), observer_.on_progress);
    const bool had_finished = loop.step() == options_.judge.steps && fs::exists(folder / "model" / "judge.json");
    const StageEnd end = loop.run(limits_);
    loop.settle();
    network->eval();
    if (end == StageEnd::kFinished && !had_finished) measure_judge(network, folder / "model");
    return end;
  }

  void measure_judge(judge::JudgeNetwork& network, const fs::path& folder) {
    judge::Judge unmeasured(network, {});
    judge::MeasurementOptions measurement;
    measurement.threads = pool_options(options_, design_).threads;
    judge::save_judge(real_file_system(), folder, network, judge::measure_judge(unmeasured, measurement));
  }

  StageEnd train_text() {
    TextStage stage(bundle_, pool_, static_cast<std::uint64_t>(options_.seed), options_.text.batch_size);
    StagePlan text = plan("text", options_.text);
    text.identity.settings["captions"] = kCaptions;
    StageLoop loop(stage, text, observer_.on_progress);
    const StageEnd end = loop.run(limits_);
    loop.settle();
    return end;
  }

  PretrainResult train_base() {
    LatentPool latents(real_file_system(), fs::path(options_.output) / "latents", bundle_.vae, pool_);
    bundle_.vae = with_scaling_factor(bundle_.vae, latents.scaling_factor());
    BaseStageOptions stage_options;
    stage_options.seed = static_cast<std::uint64_t>(options_.seed);
    stage_options.batch_size = options_.base.batch_size;
    stage_options.objective.snr_gamma = options_.snr_gamma;
    stage_options.head_weight = options_.head_weight;
    BaseStage stage(bundle_, pool_, latents, stage_options);
    StagePlan base = plan("base", options_.base);
    base.average_decay = options_.base_average_decay;
    base.identity.settings["captions"] = kCaptions;
    base.identity.settings["noise"] = kNoise;
    base.identity.settings["base_average_decay"] = std::to_string(options_.base_average_decay);
    base.identity.settings["snr_gamma"] = options_.snr_gamma ? std::to_string(*options_.snr_gamma) : "none";
    base.identity.settings["head_weight"] = std::to_string(options_.head_weight);
    base.examine_steps = options_.examine_steps;
    StageLoop loop(stage, base, observer_.on_progress);
    std::optional<judge::Judge> judge = find_judge();
    std::optional<PromptCurve> curve;
    if (judge) curve.emplace(bundle_, *judge, base.folder, kCurvePictures);
    if (curve) loop.on_examine([&](std::int64_t step) { tell_accuracy(step, curve->examine(step)); });
    PretrainResult result;
    result.end = loop.run(limits_);
    loop.settle();
    result.model_path = fs::path(options_.output) / "model";
    export_base(real_file_system(), bundle_, result.model_path);
    return result;
  }

  // Of the exported model, with the exported judge: what others will have.
  PretrainResult measure() const {
    const fs::path folder(options_.output);
    const std::optional<judge::Judge> found = find_judge();
    if (!found)
      throw ConfigError("stage", "figures need a judge, and there is none in " + folder.string(),
                        "train it first: --stage judge");
    judge::Judge judge = *found;
    model::ModelBundle bundle = model::load_bundle(folder / "model", torch::kFloat32, device_);
    FigureOptions figures;
    figures.renders = figures.prompts = options_.figure_pictures;
    figures.judging.people = options_.figure_pictures / 2;
    figures.judging.threads = pool_options(options_, design_).threads;
    write_file_atomically(real_file_system(), folder / "figures.json",
                          measure_base(bundle, judge, figures).dump(2) + "\n");
    if (observer_.on_line) observer_.on_line("figures in " + (folder / "figures.json").string());
    return {StageEnd::kFinished, folder / "model"};
  }

  // The one that was trained here, else the one begun with. Without one the base is trained all the same, only not
  // watched.
  std::optional<judge::Judge> find_judge() const {
    const fs::path folder = fs::path(options_.output) / "judge" / "model";
    if (fs::exists(folder / "judge.json")) return judge::Judge::load(folder, device_);
    if (!options_.initial_judge.empty()) return judge::Judge::load(options_.initial_judge, device_);
    if (observer_.on_line) observer_.on_line("no judge in " + folder.string() + ": no curve of prompt accuracy");
    return std::nullopt;
  }

  void tell_accuracy(std::int64_t step, const PromptAccuracy& accuracy) const {
    if (!observer_.on_line) return;
    const auto percent = std::to_string(static_cast<int>(accuracy.mean * 100.0 + 0.5));
    observer_.on_line("base step " + std::to_string(step) + ": the judge reads back " + percent +
                      " % of what was asked");
  }

  const PretrainOptions& options_;
  const PretrainObserver& observer_;
  BaseDesign design_;
  torch::Device device_;
  torch::Dtype dtype_;
  std::map<std::string, std::string> starting_hashes_;
  PicturePool pool_;
  model::ModelBundle bundle_;
  StageLimits limits_;
};

}  // namespace

PretrainResult pretrain(const PretrainOptions& options, const PretrainObserver& observer, const StopFlag& stop) {
  return Pretraining(options, observer, stop).run();
}

}  // namespace sdtune::train::pretrain
