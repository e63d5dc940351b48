// `sdtune render`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/print_json.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/render_options.h"
#include "app/commands/written_paths.h"
#include "app/ui/progress_line.h"
#include "model/base/clock.h"
#include "model/image/grid.h"
#include "model/image/png_write.h"
#include "train/portrait/renderer/portrait_batch.h"
#include "train/portrait/renderer/render_folder.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;
namespace portrait = train::portrait;

// "validation-000012-003": natural order is the order of people and views, and no two sets share a name.
std::string image_name(const RenderPlan& plan, std::int64_t image) {
  const std::string_view set = portrait::kPortraitSetNames[static_cast<std::size_t>(plan.set)];
  return fmt::format("{}-{:06}-{:03}", set, plan.person_of(image), plan.view_of(image));
}

void check_sheet(const RenderOptions& options, std::vector<Problem>& problems) {
  check_image_file("contact_sheet", options.contact_sheet, problems);
  if (options.contact_sheet.empty()) return;
  const fs::path path = options.contact_sheet;
  std::error_code status;
  if (fs::exists(path, status) && !options.overwrite) {
    problems.push_back({"--contact-sheet", "is there already (got " + path.string() + ")", "replace it: --overwrite"});
  }
}

class RenderCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"render", "Renders synthetic people, with captions and labels.", "sdtune render --output DIR [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    GivenOptions given = apply_options(options_.fields(), arguments, options_.config, "--help lists all options");
    if (given.problems.empty()) plan_ = make_render_plan(options_, given.origins, given.problems);
    check_output_folder(options_.output, given.problems);
    check_sheet(options_, given.problems);
    if (!given.problems.empty()) throw ConfigError(given.problems);
    portrait::RenderFolder folder(real_file_system(), options_.output, options_.overwrite);
    install_stop_signals();
    const std::int64_t rendered = render_all(folder);
    const fs::path labels = folder.finish();
    if (!sheet_.empty()) write_sheet();
    const double seconds = seconds_since(start_);
    print(labels, rendered, seconds);
    finish_output();
    std::fprintf(stderr, "%lld images of %lld px in %.1f s (%.0f/s)\n", static_cast<long long>(rendered),
                 static_cast<long long>(options_.size), seconds,
                 static_cast<double>(rendered) / std::max(seconds, 1e-3));
    return stop_flag().exit_code_or(0);
  }

 private:
  // Returns how many were rendered: all, unless a signal came.
  std::int64_t render_all(portrait::RenderFolder& folder) {
    const std::int64_t total = plan_.images();
    const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const std::int64_t threads = options_.threads.value_or(cores);
    // Enough for every thread, and not much in memory however many are rendered.
    const std::int64_t batch = 8 * threads;
    std::int64_t done = 0;
    while (done < total && !stop_flag().signal()) {
      const std::int64_t count = std::min(batch, total - done);
      draw_batch(folder, done, count, static_cast<int>(threads));
      done += count;
      const std::string rate =
          fmt::format("{:.0f}/s", static_cast<double>(done) / std::max(seconds_since(start_), 1e-3));
      progress_.update_bar("image", done, total, rate, done == total);
    }
    progress_.finish();
    return done;
  }

  void draw_batch(portrait::RenderFolder& folder, std::int64_t first, std::int64_t count, int threads) {
    std::vector<portrait::Portrait> portraits;
    for (std::int64_t i = first; i < first + count; ++i) {
      const portrait::ImageSeeds seeds = portrait::image_seeds(
          plan_.set, static_cast<std::uint64_t>(plan_.person_of(i)), static_cast<std::uint64_t>(plan_.view_of(i)));
      portraits.push_back(options_.subject ? portrait::draw_photo(seeds, plan_.detail)
                                           : portrait::draw_portrait(seeds, plan_.detail));
    }
    const std::vector<std::uint8_t> bytes = portrait::render_batch(portraits, options_.size, threads);
    const auto image_bytes = static_cast<std::ptrdiff_t>(3 * options_.size * options_.size);
    for (std::size_t i = 0; i < portraits.size(); ++i) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i) * image_bytes;
      Image image{options_.size, options_.size, {begin, begin + image_bytes}};
      const portrait::Portrait& rendered = portraits[i];
      const std::string name = image_name(plan_, first + static_cast<std::int64_t>(i));
      const std::string png = model::encode_png(
          image, {{"Software", "sdtune " SDTUNE_VERSION}, {"Source", "rendered"}, {"Description", rendered.caption}});
      folder.add(name, png, options_.captions ? rendered.caption : "",
                 portrait::label_line(name + ".png", rendered.caption, rendered.seeds, rendered.who, rendered.now));
      if (!options_.contact_sheet.empty()) sheet_.push_back(std::move(image));
    }
  }

  void print(const fs::path& labels, std::int64_t rendered, double seconds) const {
    const std::string& sheet = options_.contact_sheet;
    if (options_.json) {
      print_json({{"output", options_.output},
                  {"labels", labels.string()},
                  {"images", rendered},
                  {"planned", plan_.images()},
                  {"size", options_.size},
                  {"contact_sheet", sheet_.empty() ? Json() : Json(sheet)},
                  {"seconds", seconds}});
      return;
    }
    std::puts(labels.c_str());
    if (!sheet_.empty()) std::puts(sheet.c_str());
  }

  void write_sheet() const {
    model::GridLayout layout;
    layout.columns = plan_.views > 1 ? plan_.views : 0;
    const fs::path path = options_.contact_sheet;
    create_parent_folder(real_file_system(), path);
    model::write_png(real_file_system(), path, model::make_grid(sheet_, layout),
                     {{"Software", "sdtune " SDTUNE_VERSION}, {"Source", "rendered"}});
  }

  RenderOptions options_;
  RenderPlan plan_;
  std::vector<Image> sheet_;
  ProgressLine progress_{stderr};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<Command> make_render_command() {
  return std::make_unique<RenderCommand>();
}

}  // namespace sdtune::app
