// `sdtune demo`: photos to portraits with what comes along, by the commands that a user would type.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/given_options.h"
#include "app/commands/command.h"
#include "app/commands/training_arguments.h"
#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/generate/image_file.h"
#include "model/machine/machine_report.h"
#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

class DemoCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"demo", "Fine-tunes the bundled base on five example photos, and generates images.",
            "sdtune demo [--output DIR] [--device DEVICE] [-- TRAIN_OPTIONS]"};
  }
  bool takes_command() const override { return true; }
  std::string rest_of() const override { return "train"; }

  FieldList fields() override {
    FieldList list;
    OptionGroup group(list, "Demo");
    group.add("output", &output_, "Run folder. One of an earlier run is written anew.").placeholder("DIR");
    group
        .add(
            "device", &device_,
            "Device: auto, cpu, cuda or cuda:N. auto takes the CPU, with a warning, where a GPU is there and cannot be "
            "used.")
        .placeholder("DEVICE");
    return list;
  }

  int run(Arguments arguments) override {
    GivenOptions given = apply_options(fields(), arguments, "", "--help lists all options");
    if (read_train_options(arguments.command, given.problems)) return run_command_line({"train", "--help"});
    if (!given.problems.empty()) throw ConfigError(given.problems);
    const fs::path photos = find_shared_file("examples/me");
    if (photos.empty() || find_bundled_base().empty()) {
      throw ConfigError("demo", "this installation lacks the photos (examples/me) or the bundled base",
                        "install it again, or set SDTUNE_SHARE to the folder that holds them");
    }
    choose_device();
    std::vector<std::string> train = {"train", "--images", photos.string(), "--output",
                                      output_, "--device", device_,         "--overwrite"};
    train.insert(train.end(), arguments.command.begin(), arguments.command.end());
    const int code = run_command_line(train);
    return code == 0 ? generate(photos) : code;
  }

 private:
  // The words go to `train` as they are; what demo generates afterwards has to fit two of its options. Returns whether
  // they ask for its help alone.
  bool read_train_options(const std::vector<std::string>& words, std::vector<Problem>& problems) {
    TrainingArguments train;
    Arguments given = parse_arguments(words, train.fields());
    for (const Setting& setting : given.settings) {
      if (setting.name == "output") {
        problems.push_back({"--output", "is given behind --, where demo would not look for the model",
                            "sdtune demo --output DIR -- TRAIN_OPTIONS"});
      }
    }
    if (given.help) return true;
    train.load(given);  // a --config file may name the base, and what is wrong there train itself says
    train.require_second_reading(problems);
    if (!train.loaded.config.run.base.empty()) base_ = train.loaded.config.run.base;
    return false;
  }

  void choose_device() {
    if (device_ != "auto") return;
    const model::MachineReport machine = model::report_machine(output_);
    if (!machine.device.empty()) return;
    std::fprintf(stderr, "sdtune: warning: %s; going on with the CPU\n", machine.fault.c_str());
    device_ = "cpu";
  }

  // Six prompts, before and after.
  int generate(const fs::path& photos) const {
    const fs::path sheet = model::free_path(fs::path(output_) / "sheet.png");  // an earlier demo's stays
    const int code = run_command_line({"sample", "--model", output_, "--prompts", "demo", "--grid", sheet.string(),
                                       "--compare", base_, "--references", photos.string(), "--output",
                                       (fs::path(output_) / "images").string(), "--device", device_});
    if (code == 0) std::fprintf(stderr, "the sheet is %s\n", sheet.c_str());
    return code;
  }

  std::string output_ = "runs/demo";
  std::string device_ = "auto";
  std::string base_ = kBundledBase;  // that is trained
};

}  // namespace

std::unique_ptr<Command> make_demo_command() {
  return std::make_unique<DemoCommand>();
}

}  // namespace sdtune::app
