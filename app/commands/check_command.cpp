// `sdtune check`: what `train` with the same options would find wrong.
#include <cstdio>
#include <exception>
#include <utility>

#include "app/cli/error_report.h"
#include "app/cli/print_json.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/photo_advice.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
#include "model/base/json.h"
#include "model/files/temporary_folder.h"
#include "model/options/option_group.h"
#include "train/config/preset.h"
#include "train/plan/probe_settings.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/machine_warnings.h"
#include "train/preflight/option_warnings.h"
#include "train/preflight/preflight.h"
#include "train/prepare/generation_summary.h"
#include "train/run/train.h"

namespace sdtune::app {
namespace {

// {"file": PATH, "values": {OPTION: VALUE}}, or null where the base has no preset.
Json preset_json(const train::TrainConfig& config) {
  if (config.preset.empty()) return nullptr;
  Json values = Json::object();
  for (const auto& [name, value] : train::values_of_preset(config)) values[name] = value;
  return {{"file", config.preset}, {"values", values}};
}

// Keeps the values of the one step of a probe.
class ProbeObserver : public train::Observer {
 public:
  void on_step(const train::StepEvent& event) override { last = event; }
  train::StepEvent last;
};

struct Probe {
  train::TrainResult result;
  train::StepEvent step;  // where the result is kDone
};

Json probe_json(const train::StepEvent& step) {
  return {{"loss", step.loss}, {"images_per_s", step.images_per_s}, {"peak_bytes", step.max_memory_bytes}};
}

class CheckCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"check", "Lists every problem that train with the same options would report.",
            "sdtune check --images DIR [options of train]"};
  }

  FieldList fields() override { return options_.fields(own_fields()); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  int run(Arguments arguments) override {
    options_.load(arguments, own_fields());
    std::vector<Problem> problems = options_.loaded.problems;
    const train::Preflight preflight = train::run_preflight(
        options_.loaded.config, train::evaluate::classifier_reader_source(), train::PhotoUse::kExamine);
    problems.insert(problems.end(), preflight.problems.begin(), preflight.problems.end());
    train::Diagnosis advice = preflight.photos.diagnosis;
    for (const train::PhotoReport* of : {&preflight.held_out, &preflight.photos}) {
      const std::vector<Problem>& of_files = of->folder.warnings;
      advice.warnings.insert(advice.warnings.begin(), of_files.begin(), of_files.end());
    }
    const std::vector<Problem> of_machine =
        train::machine_warnings(options_.loaded.config, train::recorded_value(preflight.resume, "mixed_precision"));
    advice.warnings.insert(advice.warnings.begin(), of_machine.begin(), of_machine.end());
    const std::vector<Problem> of_options = train::option_warnings(options_.loaded.config);
    advice.warnings.insert(advice.warnings.begin(), of_options.begin(), of_options.end());
    if (!json_) {
      print_problems(problems);
      if (problems.empty()) print_plan();
      if (problems.empty()) print_advice({advice.warnings, {}});  // first what must be mended
    }
    if (problems.empty() && probe_) return json_ ? report_probe(advice) : print_probe();
    if (json_) print_report(problems, advice, nullptr);
    if (!problems.empty()) return static_cast<int>(ExitCode::kBadInput);
    if (!json_) std::puts("ok: train would start");
    return 0;
  }

 private:
  FieldList own_fields() {
    FieldList list;
    OptionGroup group(list, "Check");
    group.add("json", &json_, "Print the result as one JSON object.");
    group.add("probe", &probe_, "If there is no problem, also run one real step, in a temporary folder.");
    return list;
  }

  // What the preset set, and what would be generated.
  void print_plan() const {
    const train::TrainConfig& config = options_.loaded.config;
    const std::string preset = train::preset_line(config);
    if (!preset.empty()) std::printf("preset   %s\n", preset.c_str());
    for (const std::string& line : train::generation_summary(config)) std::printf("generate %s\n", line.c_str());
    // Not estimated: this machine's pace is known only once a step was timed, and check computes none.
    if (!probe_) std::puts("time     sdtune plan --probe with the same options measures how long a run takes here");
  }

  // `probe` is null where no step was done.
  void print_report(const std::vector<Problem>& problems, const train::Diagnosis& advice, const Json& probe) const {
    Json json;
    json["preset"] = preset_json(options_.loaded.config);
    json["generation"] =
        problems.empty() ? train::generation_summary(options_.loaded.config) : std::vector<std::string>();
    json["ok"] = problems.empty();
    json["problems"] = problems_json(problems);
    json["warnings"] = problems_json(advice.warnings);
    json["notes"] = advice.notes;
    json["probe"] = probe;
    print_json(json);
  }

  // The report is written behind the probe, since it says whether that went well. The error itself and its exit code
  // are left to main.
  int report_probe(const train::Diagnosis& advice) {
    Probe probe;
    try {
      probe = run_probe();
    } catch (const std::exception&) {
      print_report(problems_of(std::current_exception()), advice, nullptr);
      throw;
    }
    if (probe.result.code == ExitCode::kDone) {
      print_report({}, advice, probe_json(probe.step));
    } else {
      print_report({Problem{"--probe", "was stopped: " + probe.result.cause, ""}}, advice, nullptr);
    }
    return static_cast<int>(probe.result.code);
  }

  int print_probe() {
    const Probe probe = run_probe();
    if (probe.result.code == ExitCode::kDone) {
      std::printf("ok: one step done, loss %.6g, %.3g photos/s, %.2f GB of memory at most\n", probe.step.loss,
                  probe.step.images_per_s, static_cast<double>(probe.step.max_memory_bytes) / 1e9);
    }
    return static_cast<int>(probe.result.code);
  }

  // One optimizer step with the real model, device and batch; no more class images than it needs, nothing kept.
  Probe run_probe() {
    train::TrainConfig config = options_.loaded.config;
    const std::string beside = config.run.output.empty() ? "sdtune" : config.run.output;
    const TemporaryFolder folder(beside);
    config.run.output = folder.path().string();
    config.run.max_train_steps = 1;
    train::isolate_probe(config, config.run.train_batch_size * config.run.gradient_accumulation_steps);
    StopFlag& stop = install_stop_signals();
    ProbeObserver observer;
    train::TrainResult result = train::train(config, {&observer}, train::evaluate::classifier_reader_source(), stop);
    return {std::move(result), observer.last};
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
