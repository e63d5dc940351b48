// `sdtune plan`: what a run would take.
#include <cstdio>

#include "app/cli/print_json.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/plan_text.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
#include "model/core/cuda_library.h"
#include "model/files/install_paths.h"
#include "model/files/temporary_folder.h"
#include "model/options/option_group.h"
#include "train/config/preset.h"
#include "train/plan/plan_json.h"
#include "train/portrait/evaluate/classifier_reader_source.h"
#include "train/preflight/preflight.h"

namespace sdtune::app {
namespace {

class PlanCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"plan", "Estimates what a run needs: memory, time, price.",
            "sdtune plan --images DIR [options of train]\n"
            "       sdtune plan --family sdxl --photos 10 [options of train]"};
  }
  FieldList fields() override { return options_.fields(own_fields()); }
  std::vector<Preset> presets() const override { return train::installed_presets(); }

  int run(Arguments arguments) override {
    load(arguments);
    if (probe_) model::load_cuda_where_usable();  // before the plan's own backward passes on the CPU
    const train::GpuTable table =
        train::read_gpu_table(gpus_.empty() ? find_shared_file("configs/gpus.yaml").string() : gpus_);
    const train::RunPlan plan =
        train::plan_run({options_.loaded.config, family_.value_or(""), photos_, savings_, ranks_});
    std::optional<train::ProbedTimes> probed;
    if (probe_) {
      probed = probe(plan);
      if (!probed) return stop_flag().exit_code_or(0);
    }
    const std::vector<train::Rental> rentals = train::price_run(plan, table);
    if (json_) {
      print_json(train::plan_json(plan, rentals, table.currency, probed));
    } else {
      std::fputs(plan_text(plan, rentals, table.currency, probed).c_str(), stdout);
    }
    return 0;
  }

 private:
  FieldList own_fields() {
    FieldList list;
    OptionGroup group(list, "Plan");
    group.add("family", &family_, "Plan for this published model, whose files are not needed.")
        .choices({"sd15", "sd21", "sdxl"});
    group.add("photos", &photos_, "Number of photos, instead of a folder of photos.").range(1, 1e6);
    group
        .add("ranks", &ranks_,
             "Number of ranks, each with a GPU of its own; memory is that of one, the price that of all.")
        .range(1, 4096);
    group.add("gpus", &gpus_, "YAML file with GPUs and prices; empty: the installed configs/gpus.yaml.")
        .placeholder("FILE.yaml");
    group.add("probe", &probe_, "Also time a few real steps on this machine, in a temporary folder.");
    group.add("savings", &savings_, "Also estimate memory-saving options.");
    group.add("json", &json_, "Print the plan as one JSON object.");
    return list;
  }

  void load(Arguments& arguments) {
    options_.load(arguments, own_fields());
    if (family_) options_.load_for(*family_);
    std::vector<Problem>& problems = options_.loaded.problems;
    if (family_) options_.require_second_reading(problems);
    if (family_ && !options_.loaded.config.run.base.empty()) {
      problems.push_back({"--family", "and --base contradict each other", "give one of them"});
    }
    if (probe_ && (family_ || photos_)) {
      problems.push_back({"--probe", "needs real photos and a real base (not --family or --photos)", ""});
    }
    if (probe_ && ranks_ > 1) {
      problems.push_back({"--probe", "times one rank (got --ranks " + std::to_string(ranks_) + "; allowed: 1)", ""});
    }
    if (probe_ && problems.empty()) {
      train::TrainConfig config = options_.loaded.config;
      config.run.output = TemporaryFolder(output()).path().string();
      config.checkpoint.resume_from_checkpoint.clear();  // the probe starts fresh
      problems = train::find_problems(config, train::evaluate::classifier_reader_source());
    }
    if (!problems.empty()) throw ConfigError(problems);
  }

  std::optional<train::ProbedTimes> probe(const train::RunPlan& plan) const {
    const TemporaryFolder folder(output());
    StopFlag& stop = install_stop_signals();
    ProgressBar progress(stderr);
    return train::probe_run(plan, folder.path(), {&progress}, train::evaluate::classifier_reader_source(), stop);
  }

  std::string output() const {
    const std::string& given = options_.loaded.config.run.output;
    return given.empty() ? "sdtune" : given;
  }

  std::optional<std::string> family_;
  std::optional<std::int64_t> photos_;
  std::int64_t ranks_ = 1;
  std::string gpus_;
  bool probe_ = false, json_ = false, savings_ = true;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace sdtune::app
