#include "model/single_file/single_file_read.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <array>
#include <set>
#include <utility>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "model/schedule/scheduler.h"
#include "model/single_file/ldm_parts.h"
#include "model/single_file/published_configs.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// The noise schedule and its derivatives, which training code of 2022 kept as buffers.
constexpr std::array kScheduleTables = {"betas",
                                        "alphas_cumprod",
                                        "alphas_cumprod_prev",
                                        "sqrt_alphas_cumprod",
                                        "sqrt_one_minus_alphas_cumprod",
                                        "log_one_minus_alphas_cumprod",
                                        "sqrt_recip_alphas_cumprod",
                                        "sqrt_recipm1_alphas_cumprod",
                                        "posterior_variance",
                                        "posterior_log_variance_clipped",
                                        "posterior_mean_coef1",
                                        "posterior_mean_coef2",
                                        "lvlb_weights",
                                        "logvar",
                                        "scale_factor",
                                        "denoiser.sigmas",
                                        "v_pred",
                                        "ztsnr"};

bool carries_nothing(const std::string& name) {
  for (const char* table : kScheduleTables) {
    if (name == table) return true;
  }
  // Of CLIP's training; ComfyUI of 2023 saved them beside the text encoder.
  for (const char* encoder : {"cond_stage_model.", "conditioner.embedders.0."}) {
    if (name == std::string(encoder) + "logit_scale" || name == std::string(encoder) + "text_projection") return true;
  }
  return name.starts_with(kEmaPrefix);
}

BundleConfigs configs_of(const LdmFile& file, ModelFamily family, const SingleFileOptions& options,
                         PredictionChoice& prediction) {
  if (!options.config.empty()) {
    BundleConfigs configs = BundleConfigs::read(options.config);
    const ModelFamily theirs = family_of(configs, options.config.string());
    if (theirs != family) {
      throw ConfigError("--config", "describes another family than " + file.where() + " is (got " +
                                        family_name(theirs) + "; allowed: " + family_name(family) + ")");
    }
    prediction = choose_prediction(file, family, options.prediction_type, configs.scheduler);
    configs.scheduler["prediction_type"] = prediction.type;
    return configs;
  }
  check_published_size(file, family);
  prediction = choose_prediction(file, family, options.prediction_type, std::nullopt);
  if (options.tokenizer.empty()) {
    throw ConfigError(
        "--tokenizer", "is not given, and a single file holds no tokenizer",
        "give a folder with CLIP's vocab.json and merges.txt: tokenizer/ of any Stable Diffusion folder, "
        "or fetch it once: sdtune fetch openai/clip-vit-large-patch14 --file vocab.json --file merges.txt, which "
        "prints where they lie");
  }
  return published_configs(family, prediction.type, options.tokenizer);
}

// Refuses what belongs to no part and is not known to be empty; returns what is ignored.
std::vector<std::string> check_unknown(const LdmFile& file, const std::vector<LdmPart>& parts) {
  std::vector<std::string> ignored, unknown;
  for (const std::string& name : file.names_under("")) {
    bool belongs = false;
    for (const LdmPart& part : parts) belongs = belongs || name.starts_with(part.prefix);
    if (!belongs) (carries_nothing(name) ? ignored : unknown).push_back(name);
  }
  if (unknown.empty()) return ignored;
  throw WeightError(file.where(), "holds " + std::to_string(unknown.size()) +
                                      " tensors that are no part of the model (" + unknown.front() +
                                      (unknown.size() > 1 ? ", ...)" : ")"));
}

void fill(const LdmFile& file, const SingleFileOptions& options, SingleFileModel& model) {
  const std::vector<LdmPart> parts = ldm_parts(model.bundle, model.family);
  model.ignored = check_unknown(file, parts);
  std::vector<TensorSource> sources;
  for (const LdmPart& part : parts) {
    const PartTensors taken = take_part(file, part, options.extract_ema);
    model.ignored.insert(model.ignored.end(), taken.tolerated.begin(), taken.tolerated.end());
    sources.push_back(TensorSource::of_tensors(file.where() + ": " + part.name, taken.tensors));
  }
  if (!options.dtype) refuse_float64(sources);
  model.dtype = options.dtype.value_or(joint_dtype(sources));
  // All parts are compared before one is filled: what is wrong is said before gigabytes are read.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LoadReport report = compare_keys(*parts[i].module, sources[i], parts[i].kind.family);
    require_complete(report, sources[i].where());
    model.matched += std::ssize(report.matched);
  }
  if (options.dtype) refuse_overflow(sources, *options.dtype);
  for (std::size_t i = 0; i < parts.size() && !options.names_only; ++i) {
    load_weights(*parts[i].module, sources[i], parts[i].kind.family, model.dtype, torch::kCPU);
    parts[i].module->eval();
  }
}

// Whether a finite number of the tensor is none in `dtype`.
bool overflows(const torch::Tensor& stored, torch::Dtype dtype) {
  const bool is_wider = stored.is_floating_point() && stored.scalar_type() != dtype &&
                        (dtype == torch::kFloat16 || stored.scalar_type() == torch::kFloat64);
  if (!is_wider || stored.numel() == 0) return false;
  const auto [lowest, highest] = at::aminmax(stored);  // NaN where one is among them
  const torch::Tensor ends = at::stack({lowest, highest});
  const torch::Tensor doubtful = ends.isfinite().all().item<bool>() ? ends : stored;
  return doubtful.isfinite().logical_and(doubtful.to(dtype).isfinite().logical_not()).any().item<bool>();
}

void check_ema(const LdmFile& file) {
  if (file.has_under(kEmaPrefix)) return;
  throw WeightError(file.where(), "holds no EMA copy of the UNet: no tensor begins with model_ema.",
                    "leave --extract-ema out");
}

}  // namespace

void refuse_float64(const std::vector<TensorSource>& sources) {
  for (const TensorSource& source : sources) {
    for (const std::string& name : source.names()) {
      if (source.tensor(name).scalar_type() != torch::kFloat64) continue;
      throw WeightError(source.where(), "holds float64 numbers (" + name + "), which would be rounded",
                        "say so: --dtype float32");
    }
  }
}

void refuse_overflow(const std::vector<TensorSource>& sources, torch::Dtype dtype) {
  const c10::AutoGradMode no_gradients(false);
  for (const TensorSource& source : sources) {
    for (const std::string& name : source.names()) {
      if (overflows(source.tensor(name), dtype)) {
        throw WeightError(source.where(),
                          "holds numbers that are too large for " + dtype_name(dtype) + " (" + name +
                              "), which would become infinite",
                          dtype == torch::kFloat16 ? "write another format: --dtype float32 or bfloat16" : "");
      }
      source.release(name);
    }
  }
}

torch::Dtype joint_dtype(const std::vector<TensorSource>& sources) {
  std::set<torch::Dtype> dtypes;
  for (const TensorSource& source : sources) {
    for (const std::string& name : source.names()) {
      const torch::Tensor tensor = source.tensor(name);
      if (tensor.is_floating_point()) dtypes.insert(tensor.scalar_type());
    }
  }
  const bool half = dtypes.size() == 1 && c10::elementSize(*dtypes.begin()) == 2;
  return half ? *dtypes.begin() : torch::kFloat32;
}

SingleFileModel read_single_file(const fs::path& path, const SingleFileOptions& options) {
  const LdmFile file = options.pickle_key ? LdmFile(path, *options.pickle_key) : LdmFile(path);
  const ModelFamily family = detect_family(file);
  if (options.extract_ema) check_ema(file);
  PredictionChoice prediction;
  BundleConfigs configs = configs_of(file, family, options, prediction);
  if (file.has("ztsnr")) configs.scheduler["rescale_betas_zero_snr"] = true;
  make_scheduler(configs.index.scheduler_class, configs.scheduler, path.string());  // refuses what it does not support
  std::vector<Problem> misfits = configs.find_misfits(options.config.empty() ? options.tokenizer : options.config);
  if (!misfits.empty()) throw WeightError(std::move(misfits));
  SingleFileModel model{
      .bundle = empty_bundle(std::move(configs), path), .family = family, .prediction = prediction, .ignored = {}};
  fill(file, options, model);
  return model;
}

}  // namespace sdtune::model
