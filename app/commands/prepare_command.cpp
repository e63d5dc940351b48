// `sdtune prepare`: all that `train` with the same options does before its first step.
#include <cstdio>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
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
  FieldList fields() override { return options_.fields(); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  int run(Arguments arguments) override {
    options_.load(arguments);
    if (!options_.loaded.problems.empty()) throw ConfigError(options_.loaded.problems);
    StopFlag& stop = install_stop_signals();
    ProgressBar progress(stderr);
    const train::PreparedRun prepared =
        train::prepare(options_.loaded.config, {&progress}, train::evaluate::classifier_reader_source(), stop);
    if (prepared.code != ExitCode::kDone) return static_cast<int>(prepared.code);
    for (const std::string& note : prepared.notes) std::fprintf(stderr, "note     %s\n", note.c_str());
    std::printf("%s\n%s\n", prepared.contact_sheet.c_str(), prepared.cache.c_str());
    finish_output();
    return 0;
  }

 private:
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_prepare_command() {
  return std::make_unique<PrepareCommand>();
}

}  // namespace sdtune::app
