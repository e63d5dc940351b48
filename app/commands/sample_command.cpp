// `sdtune sample`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/command_options.h"
#include "app/commands/picture_file.h"
#include "app/commands/sample_options.h"
#include "app/commands/sampler_names.h"
#include "app/ui/progress_line.h"
#include "model/core/device.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"
#include "model/schedule/scheduler.h"

namespace sdtune::app {
namespace {

std::unique_ptr<model::Scheduler> chosen_scheduler(const model::ModelBundle& bundle, const SampleOptions& options) {
  if (!options.sampler) return model::make_sampler(bundle);
  const Sampler sampler = find_sampler(*options.sampler);
  // The bundle's noise schedule under another solver: only what the name asks for changes.
  Json config = bundle.scheduler_config;
  config.update(sampler.changes);
  return model::make_scheduler(sampler.class_name, config, "--sampler");
}

class SampleCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"sample", "Draws pictures of a prompt.", "sdtune sample --prompt TEXT [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    const ChosenModel chosen = choose_model(options_.model, "runs");
    const torch::Device device = model::parse_device(options_.device, "--device");
    const torch::Dtype dtype =
        options_.dtype == "auto" ? model::fast_dtype(device) : model::parse_dtype(options_.dtype, "--dtype");
    std::fprintf(stderr, "model    %s (%s)\ndevice   %s, %s\n", chosen.folder.c_str(), chosen.reason.c_str(),
                 model::describe_device(device).c_str(), model::dtype_name(dtype).c_str());
    std::fprintf(stderr, "seeds    %lld to %lld\n", static_cast<long long>(options_.seed),
                 static_cast<long long>(options_.seed + options_.num_images - 1));
    model::ModelBundle bundle = model::load_bundle(chosen.folder, dtype, device);
    const std::unique_ptr<model::Scheduler> scheduler = chosen_scheduler(bundle, options_);
    install_stop_signals();
    torch::NoGradGuard no_grad;
    for (std::int64_t first = 0; first < options_.num_images && !stop_requested(); first += options_.batch) {
      draw_batch(bundle, *scheduler, chosen.folder, first);
    }
    progress_.finish();
    return exit_code_after_stop(0);
  }

 private:
  // Throws all that is wrong at once.
  void read_options(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, options_.config,
                                       "put a prompt of several words in quotes: --prompt \"...\"");
    if (given.origins.count("prompt") == 0) {
      given.problems.push_back({"--prompt", "is not given", "say what to draw: --prompt \"a photo of sks person\""});
    }
    if (!given.problems.empty()) throw ConfigError(given.problems);
  }

  void draw_batch(model::ModelBundle& bundle, model::Scheduler& scheduler, const std::filesystem::path& folder,
                  std::int64_t first) {
    const std::int64_t count = std::min(options_.batch, options_.num_images - first);
    model::SampleRequest request;
    request.prompts.assign(static_cast<std::size_t>(count), options_.prompt);
    request.negative_prompt = options_.negative_prompt;
    request.steps = options_.steps;
    request.height = options_.height.value_or(0);
    request.width = options_.width.value_or(0);
    request.guidance_scale = options_.guidance_scale;
    request.seeds.clear();
    for (std::int64_t i = 0; i < count; ++i)
      request.seeds.push_back(static_cast<std::uint64_t>(options_.seed + first + i));
    request.stop = &stop_requested();
    request.on_step = [&](const model::SampleProgress& step) {
      const std::string label =
          "picture " + std::to_string(first + 1) + " of " + std::to_string(options_.num_images) + ", step";
      progress_.update_bar(label, step.step, step.total, "", step.step == step.total);
    };
    const torch::Tensor latents = model::draw_latents(bundle, scheduler, request);
    if (!latents.defined()) return;  // stopped
    const torch::Tensor pictures = model::decode_latents(bundle, latents);
    progress_.finish();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::filesystem::path path =
          write_picture(options_, {pictures[i], options_.seed + first + i, scheduler.class_name(), folder});
      std::puts(path.c_str());
      finish_output();
    }
  }

  SampleOptions options_;
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_sample_command() {
  return std::make_unique<SampleCommand>();
}

}  // namespace sdtune::app
