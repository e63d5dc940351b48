// `sdtune pretrain`.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "app/cli/given_options.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/written_paths.h"
#include "app/ui/progress_line.h"
#include "model/base/error.h"
#include "model/options/option_group.h"
#include "train/portrait/pretrain/pretrain.h"

namespace sdtune::app {
namespace {

class PretrainCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"pretrain", "Trains the bundled portrait base from random weights, on renders.",
            "sdtune pretrain [options]"};
  }
  FieldList fields() override {
    FieldList list = options_.fields();
    OptionGroup(list, "Pretraining")
        .add("config", &config_, "YAML file with options; flags override it.")
        .placeholder("FILE");
    return list;
  }

  int run(Arguments arguments) override {
    GivenOptions given = apply_options(fields(), arguments, config_, "--help lists all options");
    check_output_folder(options_.output, given.problems);
    if (!given.problems.empty()) throw ConfigError(given.problems);
    StopFlag& stop = install_stop_signals();
    const train::pretrain::PretrainObserver observer{
        [this](const train::pretrain::StageProgress& progress) { show(progress); },
        [this](const std::string& line) { line_.message(line); }};
    const train::pretrain::PretrainResult result = train::pretrain::pretrain(options_, observer, stop);
    line_.finish();
    if (!result.model_path.empty()) std::puts(result.model_path.c_str());
    if (result.end == train::pretrain::StageEnd::kOutOfTime)
      std::fputs("out of time: the same command resumes\n", stderr);
    return result.end == train::pretrain::StageEnd::kStopped ? stop_flag().exit_code_or(0) : 0;
  }

 private:
  void show(const train::pretrain::StageProgress& progress) {
    const std::string text = fmt::format("loss {:.4f}, {:.0f} images/s", progress.loss, progress.images_per_s);
    line_.update_bar(progress.stage + " step", progress.step, progress.total_steps, text,
                     progress.step == progress.total_steps);
  }

  train::pretrain::PretrainOptions options_;
  std::string config_;
  ProgressLine line_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_pretrain_command() {
  return std::make_unique<PretrainCommand>();
}

}  // namespace sdtune::app
