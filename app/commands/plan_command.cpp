// `sdtune plan`: what a run would take.
#include <cstdio>

#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "app/commands/plan_text.h"
#include "app/commands/temporary_folder.h"
#include "app/commands/training_arguments.h"
#include "app/ui/progress_bar.h"
#include "model/base/share_folder.h"
#include "train/plan/plan_json.h"
#include "train/run/preflight.h"

namespace sdtune::app {
namespace {

train::StopFlag stop_flag;

class PlanCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"plan", "Says what a run would take: memory, hours, price.",
            "sdtune plan --images DIR [options of train]\n"
            "       sdtune plan --family sdxl --photos 10 [options of train]"};
  }
  FieldList fields() override { return options_.fields(own_fields()); }

  int run(Arguments arguments) override {
    load(arguments);
    const train::GpuTable table =
        train::read_gpu_table(gpus_.empty() ? find_shared_file("configs/gpus.yaml").string() : gpus_);
    const train::RunPlan plan = train::plan_run({options_.loaded.config, family_.value_or(""), photos_, savings_});
    std::optional<train::ProbedTimes> probed;
    if (probe_) {
      probed = probe(plan);
      if (!probed) return exit_code_after_stop(0);
    }
    const std::vector<train::Rental> rentals = train::price_run(plan, table);
    const std::string text = json_ ? train::plan_json(plan, rentals, table.currency, probed).dump(2) + "\n"
                                   : plan_text(plan, rentals, table.currency, probed);
    std::fputs(text.c_str(), stdout);
    return 0;
  }

 private:
  FieldList own_fields() {
    const std::string group = "Plan";
    FieldInfo family{
        .name = "family", .help = "Plan for this published model, whose files need not be here.", .group = group};
    family.choices = {"sd15", "sd21", "sdxl"};
    FieldInfo photos{.name = "photos", .help = "How many photos, when their folder is not here yet.", .group = group};
    photos.min = 1;
    photos.max = 1e6;
    FieldInfo gpus{.name = "gpus",
                   .help = "YAML file with GPUs and prices; empty: configs/gpus.yaml as it comes.",
                   .group = group};
    gpus.placeholder = "FILE.yaml";
    return {{std::move(family), &family_},
            {std::move(photos), &photos_},
            {std::move(gpus), &gpus_},
            {{.name = "probe",
              .help = "Also time a few real steps on this machine, in a folder that is removed.",
              .group = group},
             &probe_},
            {{.name = "savings", .help = "Also reckon what less memory would do with.", .group = group}, &savings_},
            {{.name = "json", .help = "Print the plan as one JSON object.", .group = group}, &json_}};
  }

  void load(Arguments& arguments) {
    options_.load(arguments, own_fields());
    if (family_) options_.load_for(*family_);
    std::vector<Problem>& problems = options_.loaded.problems;
    if (family_ && !options_.loaded.config.run.base.empty()) {
      problems.push_back({"--family", "and --base contradict each other", "give one of them"});
    }
    if (probe_ && (family_ || photos_)) {
      problems.push_back({"--probe", "needs real photos and a real base (not --family or --photos)", ""});
    }
    if (probe_ && problems.empty()) {
      train::TrainConfig config = options_.loaded.config;
      config.run.output = TemporaryFolder(output()).path().string();
      problems = train::find_problems(config);
    }
    if (!problems.empty()) throw ConfigError(problems);
  }

  std::optional<train::ProbedTimes> probe(const train::RunPlan& plan) const {
    const TemporaryFolder folder(output());
    install_stop_signals([](int signal) { stop_flag.request(signal); });
    ProgressBar progress(stderr);
    return train::probe_run(plan, folder.path(), {&progress}, stop_flag);
  }

  std::string output() const {
    const std::string& given = options_.loaded.config.run.output;
    return given.empty() ? "sdtune" : given;
  }

  std::optional<std::string> family_;
  std::optional<std::int64_t> photos_;
  std::string gpus_;
  bool probe_ = false, json_ = false, savings_ = true;
  TrainingArguments options_;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace sdtune::app
