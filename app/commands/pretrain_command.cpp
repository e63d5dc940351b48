// `sdtune pretrain`.
#include <cstdio>
#include <string>

#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/ui/progress_line.h"
#include "model/base/error.h"
#include "train/config/settings.h"
#include "train/pretrain/pretrain.h"

namespace sdtune::app {
namespace {

train::StopFlag stop_flag;

class PretrainCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"pretrain", "Trains the small portrait base from nothing, on renders.", "sdtune pretrain [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    std::vector<Problem> problems = arguments.problems;
    for (const std::string& word : arguments.positionals) problems.push_back({word, "unexpected word", ""});
    train::Origins origins;
    train::apply_settings(options_.fields(), arguments.settings, origins, problems);
    if (!problems.empty()) throw ConfigError(problems);
    install_stop_signals([](int signal) { stop_flag.request(signal); });
    const train::pretrain::PretrainObserver observer{
        [this](const train::pretrain::StageProgress& progress) { show(progress); },
        [this](const std::string& line) { line_.message(line); }};
    const train::pretrain::PretrainResult result = train::pretrain::pretrain(options_, observer, stop_flag);
    line_.finish();
    if (!result.model_path.empty()) std::puts(result.model_path.c_str());
    if (result.end == train::pretrain::StageEnd::kOutOfTime)
      std::fputs("out of time: the same command goes on\n", stderr);
    const int signal = result.end == train::pretrain::StageEnd::kStopped ? stop_flag.signal() : 0;
    return signal == 0 ? 0 : 128 + signal;
  }

 private:
  void show(const train::pretrain::StageProgress& progress) {
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f, %.0f pictures/s", progress.loss, progress.pictures_per_s);
    line_.update_bar(progress.stage + " step", progress.step, progress.total_steps, text,
                     progress.step == progress.total_steps);
  }

  train::pretrain::PretrainOptions options_;
  ProgressLine line_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_pretrain_command() {
  return std::make_unique<PretrainCommand>();
}

}  // namespace sdtune::app
