// `sdtune sample`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/picture_file.h"
#include "app/commands/picture_maker.h"
#include "app/commands/prompt_list.h"
#include "app/commands/sample_options.h"
#include "app/commands/sample_plan.h"
#include "app/commands/sample_sheet.h"
#include "app/ui/progress_line.h"
#include "model/base/file_system.h"
#include "model/base/model_note.h"
#include "model/core/device.h"
#include "model/image/ai_mark.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "train/data/photo_folder.h"
#include "train/data/trigger.h"

namespace sdtune::app {
namespace {

void warn(const Problem& problem) {
  std::fprintf(stderr, "sdtune: warning: %s\n", problem.line().c_str());
}

class SampleCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"sample", "Draws pictures of a prompt.", "sdtune sample --prompt TEXT [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    plan_ = make_sample_plan(arguments, options_);
    const ChosenModel chosen = choose_model(options_.model, "runs");
    choose_prompts(read_model_note(chosen.folder));
    const std::vector<Image> photos = read_references();
    const torch::Device device = model::parse_device(options_.device, "--device");
    const torch::Dtype dtype =
        options_.dtype == "auto" ? model::fast_dtype(device) : model::parse_dtype(options_.dtype, "--dtype");
    for (PromptJob& job : plan_.jobs) {  // as the pictures' records say it
      job.options.device = device.str();
      job.options.dtype = model::dtype_name(dtype);
    }
    std::fprintf(stderr, "model    %s (%s)\ndevice   %s, %s\n", chosen.folder.c_str(), chosen.reason.c_str(),
                 model::describe_device(device).c_str(), model::dtype_name(dtype).c_str());
    std::fprintf(stderr, "seeds    %lld to %lld\n", static_cast<long long>(options_.seed),
                 static_cast<long long>(options_.seed + options_.num_images - 1));
    sources_ = read_sources(chosen.folder, with_all_loras());
    warn_of_record();
    install_stop_signals();
    torch::NoGradGuard no_grad;
    if (!options_.compare.empty()) {
      // Before the model itself, so that only one is in memory.
      const std::filesystem::path other = choose_model(options_.compare, "runs").folder;  // a run folder too
      PictureMaker maker(other, options_, device, dtype);
      check_grid(maker, photos);
      draw_all(maker, model_name(other) + ": ", false);
    }
    PictureMaker maker(chosen.folder, options_, device, dtype);
    warn_of_cut_prompts(maker);
    check_grid(maker, photos);
    draw_all(maker, "", true);
    progress_.finish();
    if (!options_.grid.empty() && !stop_requested()) write_grid(photos);
    return exit_code_after_stop(0);
  }

 private:
  // Puts the trigger in place; says so in one line when prompts lack the words that the model was trained for.
  void choose_prompts(const ModelNote& note) {
    const std::string own = note.trigger.empty() ? "a person" : note.trigger;
    std::int64_t without = 0;
    for (PromptJob& job : plan_.jobs) {
      job.options.prompt = with_trigger(job.options.prompt, options_.trigger.empty() ? own : options_.trigger);
      without += train::says_trigger(job.options.prompt, note.trigger) ? 0 : 1;
    }
    if (without == 0) return;
    const bool one = plan_.jobs.size() == 1;
    const std::string which =
        one ? "does" : std::to_string(without) + " of " + std::to_string(plan_.jobs.size()) + " do";
    warn({one ? "--prompt" : "--prompts", which + " not say \"" + note.trigger + "\"",
          "these words call the person that the model was trained on"});
  }

  // The options with the LoRAs of every prompt.
  SampleOptions with_all_loras() const {
    SampleOptions all = options_;
    all.lora.clear();
    for (const PromptJob& job : plan_.jobs)
      all.lora.insert(all.lora.end(), job.options.lora.begin(), job.options.lora.end());
    return all;
  }

  void warn_of_record() const {
    if (!plan_.record) return;
    for (const Problem& warning : plan_.record->warnings) warn(warning);
    for (const Problem& change : find_changes(*plan_.record, sources_)) warn(change);
  }

  void warn_of_cut_prompts(const PictureMaker& maker) const {
    for (const PromptJob& job : plan_.jobs) {
      const std::int64_t cut = maker.count_cut_tokens(job.options);
      if (cut == 0) continue;
      warn({"--prompt", "the last " + std::to_string(cut) + " tokens are left out (got " + job.options.prompt + ")",
            "--prompt-syntax weighted takes prompts of any length"});
    }
  }

  std::vector<Image> read_references() const {
    std::vector<Image> photos;
    if (options_.references.empty()) return photos;
    const train::PhotoFolder found = train::scan_photos(options_.references, "", false);
    if (!found.bad.empty()) throw ConfigError(found.bad);
    for (const train::Photo& photo : found.photos) photos.push_back(model::read_image(photo.path));
    return photos;
  }

  void check_grid(const PictureMaker& maker, const std::vector<Image>& photos) const {
    if (options_.grid.empty()) return;
    const bool single = plan_.jobs.size() == 1;
    const std::int64_t models = options_.compare.empty() ? 1 : 2;
    SheetPlan sheet;
    sheet.columns = std::max(single ? options_.num_images : std::ssize(plan_.jobs), std::ssize(photos));
    sheet.rows = (single ? 1 : options_.num_images) * models + (photos.empty() ? 0 : 1);
    for (const PromptJob& job : plan_.jobs) {
      const PictureMaker::Size size = maker.picture_size(job.options);
      sheet.width = std::max(sheet.width, size.width);
      sheet.height = std::max(sheet.height, size.height);
    }
    check_sheet(sheet);
  }

  // All pictures of all prompts with one model: kept for the grid, and as files where `as_files`.
  void draw_all(PictureMaker& maker, const std::string& caption, bool as_files) {
    const bool single = plan_.jobs.size() == 1;
    const std::size_t first_row = rows_.size();
    rows_.resize(first_row + static_cast<std::size_t>(single ? 1 : options_.num_images));
    for (std::size_t number = 0; number < plan_.jobs.size(); ++number) {
      PromptJob job = plan_.jobs[number];
      if (!as_files) job.options.lora.clear();  // they are made for the model, not for what it is compared with
      for (std::int64_t first = 0; first < job.options.num_images && !stop_requested(); first += job.options.batch) {
        const torch::Tensor pictures = draw_batch(maker, caption, number, first, job.options);
        if (!pictures.defined()) return;  // stopped
        const DrawnBatch batch{job.options.seed + first, pictures.size(0)};
        for (std::int64_t i = 0; i < pictures.size(0); ++i) {
          if (job.only_seed && *job.only_seed != batch.first_seed + i) continue;
          if (as_files) {
            write_file(job, batch.first_seed + i, {pictures[i], maker.scheduler_class(job.options), batch});
          }
          if (options_.grid.empty()) continue;
          SheetRow& row = rows_[first_row + static_cast<std::size_t>(single ? 0 : first + i)];
          row.pictures.push_back(to_image(pictures[i]));
          row.captions.push_back(caption + job.options.prompt);
        }
      }
    }
  }

  torch::Tensor draw_batch(PictureMaker& maker, const std::string& label, std::size_t number, std::int64_t first,
                           const SampleOptions& wanted) {
    const std::int64_t count = std::min(wanted.batch, wanted.num_images - first);
    const std::int64_t before = static_cast<std::int64_t>(number) * wanted.num_images;  // pictures of earlier prompts
    const std::int64_t all = std::ssize(plan_.jobs) * wanted.num_images;
    const auto on_step = [&](const model::SampleProgress& step) {
      const std::string text =
          label + "picture " + std::to_string(before + first + 1) + " of " + std::to_string(all) + ", step";
      progress_.update_bar(text, step.step, step.total, "", step.step == step.total);
    };
    torch::Tensor drawn = maker.draw(wanted, first, count, on_step);
    progress_.finish();
    return drawn;
  }

  void write_file(const PromptJob& job, std::int64_t seed, const Drawing& drawing) const {
    SampleOptions options = job.options;
    options.seed = seed;
    std::puts(write_picture(options, sources_, drawing).c_str());
    finish_output();
  }

  void write_grid(const std::vector<Image>& photos) {
    const std::filesystem::path path = free_path(options_.grid);
    if (path.has_parent_path()) real_file_system().create_directories(path.parent_path());
    std::vector<model::PngText> texts = {{"Software", "sdtune " SDTUNE_VERSION}};
    if (options_.ai_mark) texts.push_back(model::ai_generated_mark());
    model::write_png(real_file_system(), path, make_sheet(photos, std::move(rows_)), texts);
    std::puts(path.c_str());
    finish_output();
  }

  SampleOptions options_;
  SamplePlan plan_;
  DrawingSources sources_;
  std::vector<SheetRow> rows_;  // of the grid
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_sample_command() {
  return std::make_unique<SampleCommand>();
}

}  // namespace sdtune::app
