// `sdtune tune-machine`: times number formats and implementations of operators on this CPU, and writes the fastest into
// the user's table of processors.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/print_json.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/written_paths.h"
#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/files/temporary_folder.h"
#include "model/machine/processor_table.h"
#include "model/options/option_group.h"
#include "train/config/load_config.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/tune/format_times.h"
#include "train/tune/implementation_times.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastGain = 0.05;  // of the time: less is within what two runs differ by

class TuneMachineCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"tune-machine", "Times number formats and operators on this processor, for what auto means.",
            "sdtune tune-machine [--base DIR] [--rounds N]"};
  }
  FieldList fields() override {
    FieldList list;
    OptionGroup group(list, "Tune");
    group.add("base", &base_, "Model to generate and train with; empty: the bundled base.").placeholder("DIR|ORG/NAME");
    group.add("images", &images_, "Folder of photos to train on; empty: those that come along.").placeholder("DIR");
    group.add("rounds", &rounds_, "Rounds in which what is compared takes turns; medians count.").range(1, 100);
    group
        .add("output", &output_,
             "Table to write to; empty: the user's, which SDTUNE_PROCESSORS names, else sdtune/processors.yaml under "
             "XDG_CONFIG_HOME or ~/.config.")
        .placeholder("FILE.yaml");
    group.add("json", &json_, "Print the result as one JSON object.");
    return list;
  }

  int run(Arguments arguments) override {
    GivenOptions given = apply_options(fields(), arguments, "", "--help lists all options");
    std::error_code status;
    const fs::path table = output_.empty() ? model::own_processor_table() : fs::path(output_);
    if (table.empty()) {
      given.problems.push_back({"--output", "is not given, and there is no home folder", "name a file"});
    } else if (is_file(table)) {
      model::read_processor_table(table);  // a broken one is said before the timing
    } else if (fs::is_directory(table, status)) {
      given.problems.push_back({"--output", "is a folder (got " + table.string() + ")", "name a file"});
    }
    check_output_file("output", table, given.problems);
    const fs::path temporary = fs::temp_directory_path(status);
    if (status) {
      given.problems.push_back({"TMPDIR", "names no folder: " + status.message(), "unset it, or make the folder"});
      throw ConfigError(given.problems);
    }
    const TemporaryFolder folder(temporary / "sdtune-tune");
    train::TimingPlan plan;
    plan.config = load_config(folder.path(), given.problems);
    if (!given.problems.empty()) throw ConfigError(given.problems);
    StopFlag& stop = install_stop_signals();
    plan.rounds = static_cast<int>(rounds_);
    plan.on_line = [](const std::string& line) { std::fprintf(stderr, "sdtune: %s ...\n", line.c_str()); };
    const train::PortraitReaderSource& readers = train::evaluate::classifier_reader_source();
    const model::CpuImplementationScope untuned(model::default_cpu_implementation());
    const auto times = train::time_formats(plan, readers, stop);
    if (times.empty()) return stop.exit_code_or(static_cast<int>(ExitCode::kTerminated));
    const train::TunedFormats formats{train::fastest_format(times, &train::FormatTimes::image_seconds, kLeastGain),
                                      train::fastest_format(times, &train::FormatTimes::step_seconds, kLeastGain)};
    const auto tuned = train::choose_implementation(plan, formats, kLeastGain, readers, stop);
    if (!tuned) return stop.exit_code_or(static_cast<int>(ExitCode::kTerminated));
    const model::ProcessorEntry entry{model::processor_kind(), formats.sample, formats.train,
                                      "sdtune tune-machine, base " + fs::path(plan.config.run.base).filename().string(),
                                      tuned->fastest};
    if (json_) {
      print_as_json(times, *tuned, entry, table);
    } else {
      print_as_text(times, *tuned, entry, table);
    }
    finish_output();  // what was timed is said before the table, whose disk may be full
    model::add_processor(real_file_system(), table, entry);
    return 0;
  }

 private:
  // A training of the photos without class images, of which only the steps are timed.
  train::TrainConfig load_config(const fs::path& output, std::vector<Problem>& problems) const {
    const fs::path photos = images_.empty() ? find_shared_file("examples/me") : fs::path(images_);
    if (photos.empty()) problems.push_back({"--images", "is not given, and this installation has no photos", ""});
    std::vector<Setting> settings = {{"images", {photos.string()}, false, false, "--images", false},
                                     {"output", {output.string()}, false, false, "--output", false},
                                     {"device", {"cpu"}, false, false, "--device", false},
                                     {"with_prior_preservation", {"false"}, false, false, "tune-machine", false}};
    if (!base_.empty()) settings.push_back({"base", {base_}, false, false, "--base", false});
    train::LoadedConfig loaded = train::load_train_config("", settings);
    problems.insert(problems.end(), loaded.problems.begin(), loaded.problems.end());
    return loaded.config;
  }

  static void print_as_json(const std::vector<train::FormatTimes>& times, const train::TunedImplementation& tuned,
                            const model::ProcessorEntry& entry, const fs::path& table) {
    Json json = {{"processor", model::kind_text(entry.kind)},
                 {"sample", entry.sample},
                 {"train", entry.train},
                 {"table", table.string()},
                 {"times", Json::array()},
                 {"tried", Json::array()}};
    for (const model::CpuChoice& choice : model::kCpuChoices) json[choice.name] = choice.value_in(entry.implementation);
    for (const train::FormatTimes& each : times) {
      json["times"].push_back(
          {{"dtype", each.dtype}, {"image_seconds", each.image_seconds}, {"step_seconds", each.step_seconds}});
    }
    for (const train::ImplementationTimes& each : tuned.tried) {
      json["tried"].push_back({{each.choice, each.value},
                               {"image_ratio", each.image_ratio},
                               {"step_ratio", each.step_ratio},
                               {"taken", each.is_taken}});
    }
    print_json(json);
  }

  static void print_as_text(const std::vector<train::FormatTimes>& times, const train::TunedImplementation& tuned,
                            const model::ProcessorEntry& entry, const fs::path& table) {
    fmt::print("{}\n{:22} {:>12} {:>12}\n", model::kind_text(entry.kind), "format", "s an image", "s a step");
    for (const train::FormatTimes& each : times) {
      fmt::print("{:22} {:12.4f} {:12.4f}\n", each.dtype, each.image_seconds, each.step_seconds);
    }
    fmt::print("{:22} {:>12} {:>12}\n", "instead", "times that", "times that");
    for (const train::ImplementationTimes& each : tuned.tried) {
      fmt::print("{:22} {:12.3f} {:12.3f}{}\n", each.choice + " " + each.value, each.image_ratio, each.step_ratio,
                 each.is_taken ? "  taken" : "");
    }
    fmt::print("auto is {} for images and {} for training; {}: {}\n", entry.sample, entry.train,
               model::implementation_text(entry.implementation), table.string());
  }

  std::string base_, images_, output_;
  std::int64_t rounds_ = 3;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tune_machine_command() {
  return std::make_unique<TuneMachineCommand>();
}

}  // namespace sdtune::app
