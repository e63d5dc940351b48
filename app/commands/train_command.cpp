// `sdtune train`.
#include <cstdio>
#include <cstdlib>

#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/training_arguments.h"
#include "app/ui/hangup.h"
#include "app/ui/progress_bar.h"
#include "train/config/preset.h"
#include "train/config/run_folder.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/preflight.h"
#include "train/run/train.h"

namespace sdtune::app {
namespace {

class TrainCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"train", "Fine-tunes a model on a folder of photos.", "sdtune train --images DIR [options]"};
  }
  FieldList fields() override { return options_.fields(); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  int run(Arguments arguments) override {
    options_.load(arguments);
    std::vector<Problem> problems = options_.loaded.problems;
    if (!problems.empty()) {
      // train() would find the rest only after these are mended.
      const std::vector<Problem> more =
          train::find_problems(options_.loaded.config, train::evaluate::classifier_reader_source());
      problems.insert(problems.end(), more.begin(), more.end());
      ProgressBar progress(stderr);
      const ConfigError error(problems);
      train::finish_run(options_.loaded.config, error, {&progress});
      throw error;
    }
    StopFlag& stop = install_stop_signals();
    keep_output_after_hangup(train::run_folder(options_.loaded.config).log());
    ProgressBar progress(stderr);
    const train::TrainResult result =
        train::train(options_.loaded.config, {&progress}, train::evaluate::classifier_reader_source(), stop);
    if (!result.model_path.empty()) std::puts(result.model_path.c_str());
    return static_cast<int>(result.code);
  }

 private:
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace sdtune::app
