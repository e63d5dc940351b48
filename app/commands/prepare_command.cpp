// `sdtune prepare`: all that `train` with the same options does before its first step.
#include <cstdio>

#include "app/cli/error_report.h"
#include "app/cli/print_json.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/photo_json.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
#include "model/base/printable.h"
#include "model/options/option_group.h"
#include "train/config/preset.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/run/prepare.h"

namespace sdtune::app {
namespace {

class PrepareCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"prepare", "Checks photos, generates class images and encodes both, for train.",
            "sdtune prepare --images DIR [options of train]"};
  }
  FieldList fields() override { return options_.fields(own_fields()); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  int run(Arguments arguments) override {
    options_.load(arguments, own_fields());
    if (!options_.loaded.problems.empty()) throw ConfigError(options_.loaded.problems);
    StopFlag& stop = install_stop_signals();
    ProgressBar progress(stderr);
    const train::PreparedRun prepared =
        train::prepare(options_.loaded.config, {&progress}, train::evaluate::classifier_reader_source(), stop);
    if (prepared.code != ExitCode::kDone) return static_cast<int>(prepared.code);
    for (const std::string& note : prepared.notes) std::fprintf(stderr, "note     %s\n", printable(note).c_str());
    if (json_) {
      print_report(prepared);
    } else {
      std::printf("%s\n%s\n", prepared.contact_sheet.c_str(), prepared.cache.c_str());
    }
    finish_output();
    return 0;
  }

 private:
  FieldList own_fields() {
    FieldList list;
    OptionGroup(list, "Prepare").add("json", &json_, "Print the result as one JSON object.");
    return list;
  }

  static void print_report(const train::PreparedRun& prepared) {
    print_json({{"contact_sheet", prepared.contact_sheet.string()},
                {"cache", prepared.cache.string()},
                {"class_images", prepared.class_images},
                {"run_notes", prepared.notes},
                {"photo_report", photo_report_json(prepared.photos)}});
  }

  bool json_ = false;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_prepare_command() {
  return std::make_unique<PrepareCommand>();
}

}  // namespace sdtune::app
