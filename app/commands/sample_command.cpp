// `sdtune sample`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/command_options.h"
#include "app/commands/picture_file.h"
#include "app/commands/prompt_list.h"
#include "app/commands/sample_options.h"
#include "app/commands/sampler_names.h"
#include "app/ui/progress_line.h"
#include "model/base/model_note.h"
#include "model/core/device.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"
#include "model/schedule/scheduler.h"
#include "train/data/trigger.h"

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
    choose_prompts(read_model_note(chosen.folder));
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
    for (const std::string& prompt : prompts_) {
      options_.prompt = prompt;
      for (std::int64_t first = 0; first < options_.num_images && !stop_requested(); first += options_.batch) {
        draw_batch(bundle, *scheduler, chosen.folder, first);
      }
      prompts_drawn_ += 1;
    }
    progress_.finish();
    return exit_code_after_stop(0);
  }

 private:
  // Throws all that is wrong at once.
  void read_options(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, options_.config,
                                       "put a prompt of several words in quotes: --prompt \"...\"");
    const bool one = given.origins.count("prompt") > 0, many = given.origins.count("prompts") > 0;
    if (!one && !many) {
      given.problems.push_back({"--prompt", "is not given", "say what to draw: --prompt \"a photo of sks person\""});
    }
    if (one && many) given.problems.push_back({"--prompts", "does not go with --prompt", "leave one out"});
    if (!given.problems.empty()) throw ConfigError(given.problems);
    prompts_ = many ? read_prompts(options_.prompts) : std::vector<std::string>{options_.prompt};
  }

  // The prompts with the trigger in place; says so in one line when they lack the words that the model was trained for.
  void choose_prompts(const ModelNote& note) {
    const std::string own = note.trigger.empty() ? "a person" : note.trigger;
    std::int64_t without = 0;
    for (std::string& prompt : prompts_) {
      prompt = with_trigger(prompt, options_.trigger.empty() ? own : options_.trigger);
      without += train::says_trigger(prompt, note.trigger) ? 0 : 1;
    }
    if (without == 0) return;
    const bool one = prompts_.size() == 1;
    const std::string which = one ? "does" : std::to_string(without) + " of " + std::to_string(prompts_.size()) + " do";
    const Problem lack{one ? "--prompt" : "--prompts", which + " not say \"" + note.trigger + "\"",
                       "these words call the person that the model was trained on"};
    std::fprintf(stderr, "sdtune: warning: %s\n", lack.line().c_str());
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
      const std::int64_t picture = prompts_drawn_ * options_.num_images + first + 1;
      const std::int64_t pictures = std::ssize(prompts_) * options_.num_images;
      const std::string label = "picture " + std::to_string(picture) + " of " + std::to_string(pictures) + ", step";
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
  std::vector<std::string> prompts_;
  std::int64_t prompts_drawn_ = 0;
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_sample_command() {
  return std::make_unique<SampleCommand>();
}

}  // namespace sdtune::app
