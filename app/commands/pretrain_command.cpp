// `sdtune pretrain`.
#include <cstdio>
#include <string>

#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/command_options.h"
#include "app/ui/progress_line.h"
#include "model/base/error.h"
#include "train/pretrain/pretrain.h"

namespace sdtune::app {
namespace {

train::StopFlag stop_flag;

class PretrainCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"pretrain", "Trains the small portrait base from nothing, on renders.", "sdtune pretrain [options]"};
  }
  FieldList fields() override {
    FieldList list = options_.fields();
    list.push_back({{.name = "config",
                     .help = "YAML file of options; flags win over it.",
                     .group = "Pretraining",
                     .placeholder = "FILE"},
                    &config_});
    return list;
  }

  int run(Arguments arguments) override {
    const GivenOptions given = apply_options(fields(), arguments, config_, "--help lists all options");
    if (!given.problems.empty()) throw ConfigError(given.problems);
    install_stop_signals([](int signal) { stop_flag.request(signal); });
    const train::pretrain::PretrainObserver observer{
        [this](const train::pretrain::StageProgress& progress) { show(progress); },
        [this](const std::string& line) { line_.message(line); }};
    const train::pretrain::PretrainResult result = train::pretrain::pretrain(options_, observer, stop_flag);
    line_.finish();
    if (!result.model_path.empty()) std::puts(result.model_path.c_str());
    if (result.end == train::pretrain::StageEnd::kOutOfTime)
      std::fputs("out of time: the same command goes on\n", stderr);
    return result.end == train::pretrain::StageEnd::kStopped ? exit_code_after_stop(0) : 0;
  }

 private:
  void show(const train::pretrain::StageProgress& progress) {
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f, %.0f pictures/s", progress.loss, progress.pictures_per_s);
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
