// Runs the product's own training loop or sampler on the recorded GPU and prints what each part of it asked for, as
// JSON. scripts/operator_trace.py sets up model, photos and environment.
//
//   operator_trace train  OPTION=VALUE ...           options of `sdtune train`
//   operator_trace sample MODEL DTYPE OPTION=VALUE ...   DTYPE: auto too; device=cuda:N (cuda:0 by default)
//   operator_trace device DEVICE                    which GPU is the thread's own once DEVICE was chosen
//
// Parts of `train`: "preparation", "generating class images" and "encoding images", each from where the run first
// tells of it, "begun in bf16", "step 0", "step 1", ..., each until the next one's first micro-batch, and of a
// validation that follows a step "denoising", its calls of the UNet but the first and the last, and "after denoising".
// Of `sample`: "preparation in bfloat16", "before denoising", "denoising", "after denoising". until=N ends a training
// before step N. plant=wait, plant=upload, plant=layout or plant=memory puts a mistake into step 2 and later. RANK,
// WORLD_SIZE and the like make it one of several ranks, which meet and compare as always, and whose collectives are
// counted (ranks.cpp).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/core/cuda_library.h"
#include "model/core/device.h"
#include "model/core/image_tensor.h"
#include "model/generate/image_generator.h"
#include "model/pipeline/bundle.h"
#include "tests/support/no_portrait_readers.h"
#include "train/config/load_config.h"
#include "train/dist/process_group.h"
#include "train/dist/rank_env.h"
#include "train/observe/observer.h"
#include "train/preflight/preflight.h"
#include "train/run/build_run.h"
#include "train/run/trainer.h"

namespace sdtune {
namespace {

using Record = void (*)(const char*);

void begin_part(const std::string& name) {
  static const auto begin = reinterpret_cast<Record>(model::cuda_symbol("sdtune_record_begin"));
  begin(name.c_str());
}

void print_record() {
  const auto json = reinterpret_cast<char* (*)()>(model::cuda_symbol("sdtune_record_json"));
  char* text = json();
  std::puts(text);
  std::free(text);
}

Setting setting_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) throw std::invalid_argument("expected OPTION=VALUE, got " + word);
  Setting setting;
  setting.name = word.substr(0, equals);
  setting.items = {word.substr(equals + 1)};
  setting.origin = "--" + setting.name;
  return setting;
}

// Ends a training without an export.
struct Enough {};

// What belongs to this program and not to the product.
struct TraceOptions {
  std::string plant;
  std::int64_t until = -1;
};

// What a step must not do.
void plant(const std::string& mistake, train::Run& run) {
  if (mistake == "wait") run.optimizer->updates().item<std::int64_t>();
  if (mistake == "upload") torch::ones({4}).to(run.device);
  if (mistake == "memory") {  // a copy of the UNet that is never released
    static auto& kept = *new std::vector<torch::Tensor>;
    if (!kept.empty()) return;
    for (const torch::Tensor& weight : run.bundle.unet->parameters()) kept.push_back(weight.detach().clone());
  }
  if (mistake != "layout") return;
  for (auto& item : run.bundle.unet->named_parameters()) {
    if (item.key() != "mid_block.resnets.0.conv1.weight") continue;
    item.value().set_data(item.value().detach().clone(torch::MemoryFormat::Contiguous));
  }
}

// Names the parts of the preparation; what comes after one of them is preparation again.
class PhaseParts final : public train::Observer {
 public:
  void on_phase(const std::string& name, std::int64_t done, std::int64_t total) override {
    begin_part(total > 0 && done < total ? name : "preparation");
  }
};

// Names the parts while the loop runs.
void name_parts(train::Run& run, const TraceOptions& options) {
  const auto calls = std::make_shared<std::int64_t>(0);  // of the UNet since the last micro-batch began
  const auto current = std::make_shared<std::int64_t>(-1);
  const std::int64_t denoising = run.config.observe.validation_inference_steps;
  run.before_micro_batch = [&run, options, calls, current](std::uint64_t step, std::int64_t) {
    *calls = 0;
    if (*current == static_cast<std::int64_t>(step)) return;
    *current = static_cast<std::int64_t>(step);
    if (*current == options.until) throw Enough();
    begin_part("step " + std::to_string(step));
    if (step >= 2) plant(options.plant, run);
  };
  run.bundle.unet->set_part_listener([=](const std::string& part) {
    if (part != "conv_in") return;
    ++*calls;  // the first one is the micro-batch's
    if (*current < 0) return;
    if (*calls == 3) begin_part("denoising");
    if (*calls == denoising + 1) begin_part("after denoising");
  });
}

void trace_training(const std::vector<std::string>& words) {
  std::vector<Setting> settings;
  TraceOptions options;
  for (const std::string& word : words) {
    const Setting setting = setting_of(word);
    if (setting.name == "plant") {
      options.plant = setting.items.front();
    } else if (setting.name == "until") {
      options.until = std::stoll(setting.items.front());
    } else {
      settings.push_back(setting);
    }
  }
  const train::LoadedConfig loaded = train::load_train_config("", settings);
  if (!loaded.problems.empty()) throw ConfigError(loaded.problems);
  const train::TrainConfig& config = loaded.config;
  const test::NoPortraitReaders readers;
  const train::Preflight preflight = train::run_preflight(config, readers, train::PhotoUse::kTrain);
  train::refuse_problems(preflight);
  const torch::Device device = model::parse_device(config.run.device, "device");
  begin_part("preparation");
  std::filesystem::create_directories(config.run.output);
  const StopFlag stop;
  PhaseParts phases;
  const auto run = train::build_run(config, train::connect_ranks(train::read_rank_env(), device, config.dist, "trace"),
                                    device, preflight, {&phases}, stop);
  begin_part("begun in " + run->config.precision.mixed_precision);
  name_parts(*run, options);
  try {
    train::Trainer(*run, {}, readers, stop).train();
  } catch (const Enough&) {
    begin_part("end");
  }
}

void trace_sampling(const std::vector<std::string>& words) {
  model::GenerateOptions options;
  options.device = "cuda:0";
  Origins origins;
  std::vector<Problem> problems;
  std::vector<Setting> settings;
  for (std::size_t i = 2; i < words.size(); ++i) settings.push_back(setting_of(words[i]));
  apply_settings(options.fields(), settings, origins, problems);
  if (!problems.empty()) throw ConfigError(problems);
  const torch::Device device = model::parse_device(options.device, "device");
  const torch::Dtype dtype =
      words.at(1) == "auto" ? model::default_dtype(device) : model::parse_dtype(words.at(1), "DTYPE");
  begin_part("preparation in " + model::dtype_name(dtype));
  model::ModelBundle bundle = model::load_bundle(words.at(0), dtype, device);
  model::ImageGenerator generator(bundle);
  const torch::NoGradGuard no_grad;
  const auto listen = [](const model::SampleProgress& progress) {
    if (progress.step == 1) begin_part("denoising");
    if (progress.step == progress.total) begin_part("after denoising");
  };
  generator.generate(options, {options.prompt}, {0});  // kernels prove themselves once
  begin_part("before denoising");
  const torch::Tensor image = generator.generate(options, {options.prompt}, {0}, {.on_step = listen});
  model::pixels_to_bytes(image[0]);
}

void print_device(const std::string& word) {
  model::parse_device(word, "device");
  std::printf("{\"current\": %d}\n", torch::empty({1}, torch::kCUDA).device().index());
}

}  // namespace
}  // namespace sdtune

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    const std::string what = arguments.at(0);
    const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
    if (what == "device") {
      sdtune::print_device(words.at(0));
      return 0;
    }
    if (what != "train" && what != "sample") throw std::invalid_argument("unknown trace " + what);
    what == "train" ? sdtune::trace_training(words) : sdtune::trace_sampling(words);
    sdtune::print_record();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operator_trace: error: %s\n", error.what());
    return 1;
  }
}
