// `sdtune eval`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "app/cli/error_report.h"
#include "app/cli/given_options.h"
#include "app/cli/print_json.h"
#include "app/commands/chosen_model.h"
#include "app/commands/command.h"
#include "app/commands/eval_options.h"
#include "app/commands/written_paths.h"
#include "app/ui/progress_line.h"
#include "model/base/printable.h"
#include "model/core/device.h"
#include "model/core/tf32_scope.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/install_paths.h"
#include "model/files/model_note.h"
#include "model/image/png_write.h"
#include "model/lora/lora_model.h"
#include "model/machine/compute_dtype.h"
#include "model/pipeline/bundle.h"
#include "train/config/load_config.h"
#include "train/identity/model_images.h"
#include "train/portrait/classifier/classifier_file.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/evaluate/eval_prompts.h"
#include "train/portrait/evaluate/report.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;
namespace evaluate = train::evaluate;

constexpr std::int64_t kRenderedReferences = 5;

// "sks person" of "a photo of sks person": the prompts of an evaluation have openings of their own.
std::string words_after_opening(const std::string& prompt, const char* option, std::vector<Problem>& problems) {
  const std::string opening = evaluate::plain_prompt().opening + " ";
  if (prompt.size() > opening.size() && prompt.starts_with(opening)) return prompt.substr(opening.size());
  problems.push_back({option, "does not begin with \"" + opening + "\" and go on (got \"" + prompt + "\")", ""});
  return {};
}

void check_quick(const Origins& origins, std::vector<Problem>& problems) {
  for (const char* name : {"num_images", "num_class_images"}) {
    if (origins.count(name) == 0) continue;
    problems.push_back({origins.at(name), "contradicts --quick, which sets it", "leave one out"});
  }
}

// What the model was trained from: a LoRA's note names it, of a run its config.yaml; of other models nothing does.
std::string base_of(const fs::path& model) {
  if (const ModelNote note = read_model_note(model); !note.base.empty()) return note.base;
  const fs::path config = model.parent_path() / "config.yaml";
  if (model.filename() != "model" || !is_file(config)) return kBundledBase;
  train::LoadedConfig loaded = train::load_train_config(config, {});
  if (!loaded.problems.empty()) {  // another base's figures would seem the run's
    loaded.problems.push_back({"--base", "is not given, and " + config.string() + " cannot be read",
                               "give the model before training: --base DIR"});
    throw ConfigError(loaded.problems);
  }
  return loaded.config.run.base.empty() ? kBundledBase : loaded.config.run.base;
}

// Where --base is not given. Training changes no model's size, so a base of another size is not the one.
void check_found_base(const model::ModelBundle& tuned, const model::ModelBundle& base) {
  if (tuned.resolution() == base.resolution()) return;
  throw ConfigError("--base",
                    "is not given, and " + base.folder.string() + " generates images of " +
                        std::to_string(base.resolution()) + " px, the model of " + std::to_string(tuned.resolution()),
                    "give the model before training: --base DIR");
}

class EvalCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"eval", "Measures how well a model generates the rendered person it was trained on.",
            "sdtune eval --model runs/me --images examples/me [options]"};
  }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    const ChosenModel chosen = choose_model(options_.model, "runs");
    if (!options_.instance_prompt) choose_trigger(chosen.folder);
    const fs::path base_folder = find_model_folder(options_.base.empty() ? base_of(chosen.folder) : options_.base);
    const torch::Device device = model::parse_device(options_.device, "--device");
    const model::Tf32Scope tf32(false);  // --dtype float32 measures in float32
    if (const std::string warning = model::device_warning(options_.device); !warning.empty()) {
      std::fprintf(stderr, "sdtune: warning: --device: %s\n", warning.c_str());
    }
    const torch::Dtype dtype = model::choose_dtype(options_.dtype, device, model::ComputeUse::kSample, "--dtype");
    if (const std::string note = model::unknown_processor_note(options_.dtype, device); !note.empty()) {
      std::fprintf(stderr, "sdtune: warning: --dtype: %s\n", note.c_str());
    }
    model::ModelBundle base = model::load_bundle(base_folder, dtype, device);
    train::classifier::PortraitClassifier classifier =
        train::classifier::PortraitClassifier::load(classifier_folder(base.resolution()), device);
    if (labelled_) evaluate::check_detail(*labelled_, classifier.design().detail, options_.images);
    const evaluate::Subject subject = make_subject(classifier, subject_number_);
    const evaluate::Subject shuffled = make_rendered_subject(classifier, another_subject());
    model::ModelBundle tuned = model::load_model(chosen.folder, dtype, device);
    if (options_.base.empty()) check_found_base(tuned, base);
    std::fprintf(stderr, "model    %s (%s)\nbase     %s\nsubject  %llu, \"%s\", %lld photos\ndevice   %s, %s\n",
                 chosen.folder.c_str(), chosen.reason.c_str(), base_folder.c_str(),
                 static_cast<unsigned long long>(subject.number), printable(plan_.subject_words).c_str(),
                 static_cast<long long>(subject.references.size(0)), model::describe_device(device).c_str(),
                 model::dtype_name(dtype).c_str());
    const train::ModelImageOptions generation{.steps = options_.steps,
                                              .guidance_scale = options_.guidance_scale,
                                              .side = std::min(classifier.design().size, base.resolution())};
    const auto threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    plan_.detail = classifier.design().detail;
    plan_.side = classifier.design().size;
    plan_.accepted_from = classifier.figures().by_references.threshold;
    const evaluate::EvaluationTools tools{
        train::model_images(tuned, generation),
        train::model_images(base, generation),
        [threads, side = classifier.design().size](const auto& portraits) {
          return train::classifier::portrait_images(portraits, side, threads);
        },
        [&classifier](const torch::Tensor& images) { return classifier.read(images); },
        [this](const std::string& what) { progress_.update(what, true); },
        chosen.folder.string(),
        base_folder.string()};
    write(evaluate::evaluate(subject, shuffled, tools, plan_), chosen.folder, base_folder);
    return 0;
  }

 private:
  // Throws all that is wrong at once.
  void read_options(const Arguments& arguments) {
    GivenOptions given = apply_options(options_.fields(), arguments, options_.config, "--help lists all options");
    if (given.problems.empty()) {
      if (options_.instance_prompt) {
        plan_.subject_words = words_after_opening(*options_.instance_prompt, "--instance-prompt", given.problems);
      }
      plan_.class_words = words_after_opening(options_.class_prompt, "--class-prompt", given.problems);
      if (options_.quick) check_quick(given.origins, given.problems);
      check_output_folder(options_.output, given.problems);
      choose_subject(given.problems);
    }
    if (!given.problems.empty()) throw ConfigError(given.problems);
    plan_.images_per_prompt = options_.num_images;
    plan_.class_images = options_.num_class_images;
    plan_.seed = static_cast<std::uint64_t>(options_.seed);
    if (!options_.quick) return;
    plan_.images_per_prompt = 1;
    plan_.renders_per_prompt = 4;
    plan_.class_images = 32;
    plan_.class_images_per_prompt = 1;
  }

  // A model that sdtune tuned knows its words; of any other the plan's stay.
  void choose_trigger(const fs::path& model) {
    const std::string trigger = read_model_note(model).trigger;
    if (!trigger.empty()) plan_.subject_words = trigger;
  }

  void choose_subject(std::vector<Problem>& problems) {
    std::error_code status;
    if (!options_.images.empty() && !fs::is_directory(options_.images, status)) {
      problems.push_back({"--images", "there is no such folder (got " + options_.images + ")", ""});
      return;
    }
    if (!options_.images.empty()) labelled_ = evaluate::labelled_subject(options_.images);
    if (!labelled_ && !options_.subject) {
      problems.push_back({"--subject", "is not given, and --images has no labels.jsonl that would tell",
                          "eval compares with renders, so it needs a person of `sdtune render --subject N`"});
      return;
    }
    const auto given = static_cast<std::uint64_t>(options_.subject.value_or(0));
    if (labelled_ && options_.subject && labelled_->number != given) {
      problems.push_back({"--subject",
                          "is not the person of --images (got " + std::to_string(given) +
                              "; allowed: " + std::to_string(labelled_->number) + ")",
                          ""});
    }
    subject_number_ = labelled_ ? labelled_->number : given;
  }

  // The one that is named, else the installed one for images of that size.
  fs::path classifier_folder(std::int64_t resolution) const {
    const fs::path found = train::classifier::find_classifier(options_.classifier, resolution);
    if (!found.empty()) return found;
    throw ConfigError("--classifier", "is not given, and this installation has none",
                      "give its folder: --classifier DIR");
  }

  evaluate::Subject make_subject(train::classifier::PortraitClassifier& classifier, std::uint64_t number) const {
    if (options_.images.empty()) return make_rendered_subject(classifier, number);
    return evaluate::make_subject(classifier, number,
                                  evaluate::photo_references(options_.images, classifier.design().size));
  }

  static evaluate::Subject make_rendered_subject(train::classifier::PortraitClassifier& classifier,
                                                 std::uint64_t number) {
    return evaluate::make_subject(classifier, number,
                                  evaluate::rendered_references(classifier.design(), number, kRenderedReferences));
  }

  std::uint64_t another_subject() const {
    return (subject_number_ + 1) % train::portrait::people_in(train::portrait::PortraitSet::kReserved);
  }

  // The table comes first: where a file cannot be written, the figures are there.
  void write(const evaluate::Evaluation& evaluation, const fs::path& model, const fs::path& base) {
    progress_.finish();
    Json json{{"subject", subject_number_},
              {"seed", options_.seed},
              {"model", model.string()},
              {"base", base.string()},
              {"images", options_.images.empty() ? Json() : Json(options_.images)},
              {"output", options_.output}};
    json.update(evaluate::to_json(evaluation));
    const fs::path folder = options_.output;
    if (options_.json) {
      print_json(json);
    } else {
      std::fputs(evaluate::table_of(evaluation).c_str(), stdout);
    }
    real_file_system().create_directories(folder);
    write_file_atomically(real_file_system(), folder / "eval.json",
                          json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    model::write_png(real_file_system(), folder / "sheet.png", evaluate::sheet_of(evaluation),
                     {{"Software", "sdtune " SDTUNE_VERSION}});
    if (!options_.json) {
      std::printf("%s\n%s\n", (folder / "eval.json").c_str(), (folder / "sheet.png").c_str());
    }
    finish_output();
  }

  EvalOptions options_;
  evaluate::EvaluationPlan plan_;
  std::optional<evaluate::LabelledSubject> labelled_;  // what the photos say
  std::uint64_t subject_number_ = 0;
  ProgressLine progress_{stderr};
};

}  // namespace

std::unique_ptr<Command> make_eval_command() {
  return std::make_unique<EvalCommand>();
}

}  // namespace sdtune::app
