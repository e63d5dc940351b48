// `sdtune check`: what `train` with the same options would find wrong.
#include <cstdio>

#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/photo_advice.h"
#include "app/commands/temporary_folder.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
#include "model/base/json.h"
#include "train/run/preflight.h"
#include "train/run/train.h"

namespace sdtune::app {
namespace {

train::StopFlag stop_flag;

// Remembers the one step of a probe.
class ProbeObserver : public train::Observer {
 public:
  void on_step(const train::StepEvent& event) override { last = event; }
  train::StepEvent last;
};

class CheckCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"check", "Says everything that train with the same options would find wrong.",
            "sdtune check --images DIR [options of train]"};
  }

  FieldList fields() override { return options_.fields(own_fields()); }

  int run(Arguments arguments) override {
    options_.load(arguments, own_fields());
    std::vector<Problem> problems = options_.loaded.problems;
    train::Diagnosis advice;
    const std::vector<Problem> more = train::find_problems(options_.loaded.config, advice);
    problems.insert(problems.end(), more.begin(), more.end());
    if (json_) {
      print_json(problems, advice);
    } else {
      print_problems(problems);
      if (problems.empty()) print_advice({advice.warnings, {}});  // first what must be mended
    }
    if (!problems.empty()) return static_cast<int>(ExitCode::kBadInput);
    if (probe_) return run_probe();
    if (!json_) std::puts("ok: train would start");
    return 0;
  }

 private:
  FieldList own_fields() {
    const std::string group = "Check";
    return {{{.name = "json", .help = "Print the result as one JSON object.", .group = group}, &json_},
            {{.name = "probe",
              .help = "If nothing is wrong, also do one real step, in a folder that is removed.",
              .group = group},
             &probe_}};
  }

  static void print_json(const std::vector<Problem>& problems, const train::Diagnosis& advice) {
    Json json;
    json["ok"] = problems.empty();
    json["problems"] = problems_json(problems);
    json["warnings"] = problems_json(advice.warnings);
    json["notes"] = advice.notes;
    std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }

  // One optimizer step with the real model, device and batch; no more class pictures than it needs, nothing kept.
  int run_probe() {
    train::TrainConfig config = options_.loaded.config;
    const std::string beside = config.run.output.empty() ? "sdtune" : config.run.output;
    const TemporaryFolder folder(beside);
    config.run.output = folder.path().string();
    config.run.max_train_steps = 1;
    config.data.num_class_images = config.run.train_batch_size * config.run.gradient_accumulation_steps;
    config.observe.validation_prompt.clear();
    install_stop_signals([](int signal) { stop_flag.request(signal); });
    ProbeObserver observer;
    const train::TrainResult result = train::train(config, {&observer}, stop_flag);
    if (result.code == ExitCode::kDone && !json_) {
      std::printf("ok: one step done, loss %.6g, %.3g images/s, %.2f GB of memory at most\n", observer.last.loss,
                  observer.last.images_per_s, static_cast<double>(observer.last.max_memory_bytes) / 1e9);
    }
    return static_cast<int>(result.code);
  }

  bool json_ = false;
  bool probe_ = false;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace sdtune::app
