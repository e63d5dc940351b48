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
#include "app/commands/command_options.h"
#include "app/commands/picture_file.h"
#include "app/commands/picture_maker.h"
#include "app/commands/prompt_list.h"
#include "app/commands/sample_options.h"
#include "app/commands/sample_sheet.h"
#include "app/ui/progress_line.h"
#include "model/base/file_system.h"
#include "model/base/model_note.h"
#include "model/core/device.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "train/data/photo_folder.h"
#include "train/data/trigger.h"

namespace sdtune::app {
namespace {

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
    const std::vector<Image> photos = read_references();
    const torch::Device device = model::parse_device(options_.device, "--device");
    const torch::Dtype dtype =
        options_.dtype == "auto" ? model::fast_dtype(device) : model::parse_dtype(options_.dtype, "--dtype");
    std::fprintf(stderr, "model    %s (%s)\ndevice   %s, %s\n", chosen.folder.c_str(), chosen.reason.c_str(),
                 model::describe_device(device).c_str(), model::dtype_name(dtype).c_str());
    std::fprintf(stderr, "seeds    %lld to %lld\n", static_cast<long long>(options_.seed),
                 static_cast<long long>(options_.seed + options_.num_images - 1));
    install_stop_signals();
    torch::NoGradGuard no_grad;
    if (!options_.compare.empty()) {
      // Before the model itself, so that only one is in memory.
      const std::filesystem::path other = choose_model(options_.compare, "runs").folder;  // a run folder too
      PictureMaker maker(other, options_, device, dtype);
      draw_all(maker, model_name(other) + ": ", false);
    }
    PictureMaker maker(chosen.folder, options_, device, dtype);
    draw_all(maker, "", true);
    progress_.finish();
    if (!options_.grid.empty() && !stop_requested()) write_grid(photos);
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
    check_grid(given.problems);
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

  void check_grid(std::vector<Problem>& problems) const {
    for (const auto& [name, value] :
         {std::pair{"--compare", &options_.compare}, {"--references", &options_.references}}) {
      if (!value->empty() && options_.grid.empty()) {
        problems.push_back({name, "needs --grid", "say where all pictures go: --grid sheet.png"});
      }
    }
    if (!options_.grid.empty() && std::filesystem::path(options_.grid).extension() != ".png") {
      problems.push_back({"--grid", "does not end with .png (got " + options_.grid + ")", ""});
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

  // All pictures of all prompts with one model: kept for the grid, and as files where `as_files`.
  void draw_all(PictureMaker& maker, const std::string& caption, bool as_files) {
    const bool single = prompts_.size() == 1;
    const std::size_t first_row = rows_.size();
    rows_.resize(first_row + static_cast<std::size_t>(single ? 1 : options_.num_images));
    for (std::int64_t prompt = 0; prompt < std::ssize(prompts_); ++prompt) {
      options_.prompt = prompts_[static_cast<std::size_t>(prompt)];
      for (std::int64_t first = 0; first < options_.num_images && !stop_requested(); first += options_.batch) {
        const torch::Tensor pictures = draw_batch(maker, caption, prompt * options_.num_images, first);
        if (!pictures.defined()) return;  // stopped
        for (std::int64_t i = 0; i < pictures.size(0); ++i) {
          if (as_files) write_file({pictures[i], options_.seed + first + i, maker.scheduler_class(), maker.folder()});
          if (options_.grid.empty()) continue;
          SheetRow& row = rows_[first_row + static_cast<std::size_t>(single ? 0 : first + i)];
          row.pictures.push_back(to_image(pictures[i]));
          row.captions.push_back(caption + options_.prompt);
        }
      }
    }
  }

  // `before`: how many pictures of this model were drawn for earlier prompts.
  torch::Tensor draw_batch(PictureMaker& maker, const std::string& label, std::int64_t before, std::int64_t first) {
    const std::int64_t count = std::min(options_.batch, options_.num_images - first);
    const std::int64_t pictures = std::ssize(prompts_) * options_.num_images;
    const auto on_step = [&](const model::SampleProgress& step) {
      const std::string text =
          label + "picture " + std::to_string(before + first + 1) + " of " + std::to_string(pictures) + ", step";
      progress_.update_bar(text, step.step, step.total, "", step.step == step.total);
    };
    torch::Tensor drawn = maker.draw(options_.prompt, first, count, on_step);
    progress_.finish();
    return drawn;
  }

  void write_file(const Drawing& drawing) const {
    std::puts(write_picture(options_, drawing).c_str());
    finish_output();
  }

  void write_grid(const std::vector<Image>& photos) {
    const std::filesystem::path path = free_path(options_.grid);
    if (path.has_parent_path()) real_file_system().create_directories(path.parent_path());
    model::write_png(real_file_system(), path, make_sheet(photos, std::move(rows_)),
                     {{"Software", "sdtune " SDTUNE_VERSION}});
    std::puts(path.c_str());
    finish_output();
  }

  SampleOptions options_;
  std::vector<std::string> prompts_;
  std::vector<SheetRow> rows_;  // of the grid
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_sample_command() {
  return std::make_unique<SampleCommand>();
}

}  // namespace sdtune::app
