// `sdtune sample`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/sample_options.h"
#include "app/commands/sample_plan.h"
#include "app/ui/progress_line.h"
#include "model/base/json.h"
#include "model/core/device.h"
#include "model/core/image_tensor.h"
#include "model/core/tf32_scope.h"
#include "model/files/file_system.h"
#include "model/files/model_note.h"
#include "model/generate/a1111_parameters.h"
#include "model/generate/contact_sheet.h"
#include "model/generate/image_file.h"
#include "model/generate/image_generator.h"
#include "model/generate/model_additions.h"
#include "model/generate/prompt_list.h"
#include "model/image/ai_mark.h"
#include "model/image/png_write.h"
#include "model/lora/lora_model.h"
#include "model/machine/compute_dtype.h"
#include "train/data/photo_folder.h"
#include "train/data/trigger.h"

namespace sdtune::app {
namespace {

void warn(const Problem& problem) {
  std::fprintf(stderr, "sdtune: warning: %s\n", problem.line().c_str());
}

// Where every image is computed.
struct Machine {
  torch::Device device;
  torch::Dtype dtype;
};

// A model whose images are generated, and what is done with them.
struct ModelTurn {
  std::filesystem::path folder;
  std::string caption;    // stands before each prompt in the grid
  bool compared = false;  // with the model itself: its images go to the grid alone
};

class SampleCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"sample", "Generates images from a prompt.", "sdtune sample --prompt TEXT [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    plan_ = make_sample_plan(arguments, options_);
    const ChosenModel chosen = choose_model(options_.model, "runs");
    choose_prompts(read_model_note(chosen.folder));
    const std::vector<Image> photos = read_references();
    const Machine machine = choose_machine();
    const model::Tf32Scope tf32(options_.image.allow_tf32);
    print_start(chosen, machine);
    sources_ = model::read_sources(chosen.folder, options_.model, with_all_loras());
    warn_of_metadata();
    install_stop_signals();
    if (!options_.compare.empty()) {
      // Before the model itself, so that only one is in memory.
      const std::filesystem::path other = choose_model(options_.compare, "runs").folder;  // a run folder too
      generate_all({other, model::model_name(other) + ": ", true}, machine, photos);
    }
    generate_all({chosen.folder, "", false}, machine, photos);
    progress_.finish();
    if (!options_.grid.empty() && !stop_flag().signal()) write_grid(photos);
    return stop_flag().exit_code_or(0);
  }

 private:
  // Puts the trigger in place; one warning says when prompts lack the words that the model was trained with.
  void choose_prompts(const ModelNote& note) {
    const std::string own = note.trigger.empty() ? "a person" : note.trigger;
    std::int64_t without = 0;
    for (PromptJob& job : plan_.jobs) {
      job.options.prompt = model::with_trigger(job.options.prompt, options_.trigger.empty() ? own : options_.trigger);
      without += train::says_trigger(job.options.prompt, note.trigger) ? 0 : 1;
    }
    if (without == 0) return;
    const bool one = plan_.jobs.size() == 1;
    const std::string which =
        one ? "does" : std::to_string(without) + " of " + std::to_string(plan_.jobs.size()) + " do";
    warn({one ? "--prompt" : "--prompts", which + " not say \"" + note.trigger + "\"",
          "these words call the person that the model was trained on"});
  }

  std::vector<Image> read_references() const {
    std::vector<Image> photos;
    if (options_.references.empty()) return photos;
    std::mutex mutex;
    std::map<std::filesystem::path, Image> decoded;
    const train::PhotoVisitor visitor{.keep = [&](const train::Photo& photo, const Image& image) {
      const std::lock_guard lock(mutex);
      decoded[photo.path] = image;
    }};
    const train::PhotoFolder found = train::scan_photos(options_.references, "", false, visitor);
    if (!found.bad.empty()) throw ConfigError(found.bad);
    for (const train::Photo& photo : found.photos) photos.push_back(std::move(decoded.at(photo.path)));
    return photos;
  }

  // Device and dtype, which the images' metadata state too.
  Machine choose_machine() {
    const model::GenerateOptions& asked = options_.image;
    const torch::Device device = model::parse_device(asked.device, "--device");
    if (const std::string warning = model::device_warning(asked.device); !warning.empty())
      warn({"--device", warning, ""});
    const torch::Dtype dtype = model::choose_dtype(asked.dtype, device, model::ComputeUse::kSample, "--dtype");
    const std::string note = model::unknown_processor_note(asked.dtype, device);
    if (!note.empty()) warn({"--dtype", note, ""});
    for (PromptJob& job : plan_.jobs) {
      job.options.device = device.str();
      job.options.dtype = model::dtype_name(dtype);
    }
    return {device, dtype};
  }

  void print_start(const ChosenModel& chosen, const Machine& machine) const {
    std::fprintf(stderr, "model    %s (%s)\ndevice   %s, %s\n", chosen.folder.c_str(), chosen.reason.c_str(),
                 model::describe_device(machine.device).c_str(), model::dtype_name(machine.dtype).c_str());
    const auto [first, last] = written_seeds();
    std::fprintf(stderr, "seeds    %lld to %lld\n", static_cast<long long>(first), static_cast<long long>(last));
  }

  // The lowest and the highest of the images that are written: a line of --prompts may have a seed of its own.
  std::pair<std::int64_t, std::int64_t> written_seeds() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
    for (const PromptJob& job : plan_.jobs) {
      const std::int64_t begin = job.only_seed.value_or(job.options.seed);
      first = std::min(first, begin);
      last = std::max(last, job.only_seed.value_or(begin + job.options.num_images - 1));
    }
    return {first, last};
  }

  // The options with the LoRAs of every prompt.
  model::GenerateOptions with_all_loras() const {
    model::GenerateOptions all = options_.image;
    all.loras.clear();
    for (const PromptJob& job : plan_.jobs) {
      all.loras.insert(all.loras.end(), job.options.loras.begin(), job.options.loras.end());
    }
    return all;
  }

  void warn_of_metadata() const {
    if (!plan_.like) return;
    for (const Problem& warning : plan_.like->warnings) warn(warning);
    for (const Problem& change : model::find_changes(*plan_.like, sources_)) warn(change);
  }

  void warn_of_cut_prompts(const model::ModelBundle& bundle) const {
    for (const PromptJob& job : plan_.jobs) {
      if (job.options.prompt_syntax != "plain") continue;
      const std::int64_t cut = model::count_cut_tokens(bundle, job.options.prompt);
      if (cut == 0) continue;
      warn({"--prompt", "the last " + std::to_string(cut) + " tokens are left out (got " + job.options.prompt + ")",
            "--prompt-syntax weighted takes prompts of any length"});
    }
  }

  // Some solvers lack the key in diffusers too and compute with the usual betas.
  void warn_of_usual_betas(const model::ModelBundle& bundle, const model::ImageGenerator& generator) const {
    const char* key = "rescale_betas_zero_snr";
    if (bundle.scheduler_config.value(key, Json()) != true) return;
    for (const PromptJob& job : plan_.jobs) {
      const torch::Tensor last = generator.make_scheduler(job.options)->noise_schedule().alphas_cumprod[-1];
      if (last.item<double>() < 1e-6) continue;
      const std::string solver = job.options.sampler.value_or(bundle.scheduler_class);
      warn({"--sampler", "begins below the noisiest level of this model (got " + solver + ")",
            std::string("it does not know ") + key + "; ddim, euler, dpm++2m and unipc do"});
      return;
    }
  }

  // All images of all prompts with one model: kept for the grid, and as files unless `turn.compared`.
  void generate_all(const ModelTurn& turn, const Machine& machine, const std::vector<Image>& photos) {
    model::ModelBundle bundle = model::load_model(turn.folder, machine.dtype, machine.device);
    model::add_to_model(options_.image, bundle);
    model::ImageGenerator generator(bundle);
    if (!turn.compared) {
      warn_of_cut_prompts(bundle);
      warn_of_usual_betas(bundle, generator);
    }
    if (!options_.grid.empty()) check_grid(generator, photos);
    const std::size_t first_row = rows_.size();
    rows_.resize(first_row + static_cast<std::size_t>(is_single() ? 1 : options_.image.num_images));
    for (std::size_t number = 0; number < plan_.jobs.size(); ++number) {
      PromptJob job = plan_.jobs[number];
      job.options = generator.resolved(job.options);
      apply_clip_skip(job.options, bundle, turn);
      if (turn.compared) job.options.loras.clear();  // they are made for the model, not for what it is compared with
      if (!generate_job(generator, turn, job, number, first_row)) return;
    }
  }

  // A1111's "Clip skip" of --like, which each model counts in its own way.
  void apply_clip_skip(model::GenerateOptions& options, const model::ModelBundle& bundle, const ModelTurn& turn) const {
    if (!plan_.like || !plan_.like->a1111_clip_skip) return;
    const std::int64_t theirs = *plan_.like->a1111_clip_skip;
    options.clip_skip = model::clip_skip_of_a1111(theirs, bundle);
    if (theirs <= 2 || options.clip_skip > 0 || turn.compared) return;
    warn({"--like: " + options_.like, "is not taken over: Clip skip (got " + std::to_string(theirs) + ")",
          "A1111 ignores it for SD 2.x"});
  }

  // False when stopped.
  bool generate_job(model::ImageGenerator& generator, const ModelTurn& turn, const PromptJob& job, std::size_t number,
                    std::size_t first_row) {
    const model::ModelSampling sampling{generator.sizes(job.options).first_pass, generator.scheduler_class(job.options),
                                        generator.make_scheduler(job.options)->config(), generator.is_xl()};
    for (std::int64_t first = 0; first < job.options.num_images; first += job.batch) {
      if (stop_flag().signal()) return false;
      const torch::Tensor images = generate_batch(generator, turn.caption, job, number, first);
      if (!images.defined()) return false;
      const model::ImageBatch batch{job.options.seed + first, images.size(0)};
      for (std::int64_t i = 0; i < batch.count; ++i) {
        if (job.only_seed && *job.only_seed != batch.first_seed + i) continue;
        if (!turn.compared) write_file(job.options, batch.first_seed + i, {images[i], sampling, batch});
        if (options_.grid.empty()) continue;
        model::SheetRow& row = rows_[first_row + static_cast<std::size_t>(is_single() ? 0 : first + i)];
        row.images.push_back(model::tensor_to_image(images[i]));
        row.captions.push_back(turn.caption + job.options.prompt);
      }
    }
    return true;
  }

  // Images `first` ... of the job's prompt; image i has seed + i.
  torch::Tensor generate_batch(model::ImageGenerator& generator, const std::string& label, const PromptJob& job,
                               std::size_t number, std::int64_t first) {
    const model::GenerateOptions& options = job.options;
    const std::int64_t count = std::min(job.batch, options.num_images - first);
    const std::int64_t before = static_cast<std::int64_t>(number) * options.num_images;  // images of earlier prompts
    const std::int64_t all = std::ssize(plan_.jobs) * options.num_images;
    const std::string text =
        label + "image " + std::to_string(before + first + 1) + " of " + std::to_string(all) + ", step";
    const auto on_step = [&](const model::SampleProgress& step) {
      progress_.update_bar(text, step.step, step.total, "", step.step == step.total);
    };
    std::vector<std::uint64_t> seeds;
    for (std::int64_t i = 0; i < count; ++i) seeds.push_back(static_cast<std::uint64_t>(options.seed + first + i));
    const std::vector<std::string> prompts(seeds.size(), options.prompt);
    torch::Tensor images = generator.generate(options, prompts, std::move(seeds), {on_step, &stop_flag().requested()});
    progress_.finish();
    return images;
  }

  bool is_single() const { return plan_.jobs.size() == 1; }

  void check_grid(model::ImageGenerator& generator, const std::vector<Image>& photos) const {
    const std::int64_t models = options_.compare.empty() ? 1 : 2;
    model::SheetPlan sheet;
    sheet.columns = std::max(is_single() ? options_.image.num_images : std::ssize(plan_.jobs), std::ssize(photos));
    sheet.rows = (is_single() ? 1 : options_.image.num_images) * models + (photos.empty() ? 0 : 1);
    for (const PromptJob& job : plan_.jobs) {
      const model::PixelSize size = generator.sizes(job.options).result;
      sheet.width = std::max(sheet.width, size.width);
      sheet.height = std::max(sheet.height, size.height);
    }
    model::check_sheet(sheet, "--grid");
  }

  void write_file(model::GenerateOptions options, std::int64_t seed, const model::GeneratedImage& image) const {
    options.seed = seed;
    std::puts(model::write_image(options_.output, options, sources_, image).c_str());
    finish_output();
  }

  void write_grid(const std::vector<Image>& photos) {
    const std::filesystem::path path = model::free_path(options_.grid);
    create_parent_folder(real_file_system(), path);
    std::vector<model::PngText> texts = {{"Software", "sdtune " SDTUNE_VERSION}};
    if (options_.image.ai_mark) texts.push_back(model::ai_generated_mark());
    model::write_png(real_file_system(), path, model::make_sheet(photos, std::move(rows_)), texts);
    std::puts(path.c_str());
    finish_output();
  }

  SampleOptions options_;
  SamplePlan plan_;
  model::ImageSources sources_;
  std::vector<model::SheetRow> rows_;  // of the grid
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_sample_command() {
  return std::make_unique<SampleCommand>();
}

}  // namespace sdtune::app
