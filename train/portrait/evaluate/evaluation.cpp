#include "train/portrait/evaluate/evaluation.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/error.h"
#include "train/portrait/evaluate/class_scores.h"
#include "train/portrait/evaluate/face_sharpness.h"
#include "train/portrait/evaluate/subject_scores.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::size_t kBatch = 16;  // images generated at once
// Views and people that are used nowhere else: photos are a subject's first views, the classifier's threshold was
// measured on the first validation people.
constexpr std::uint64_t kAnchorViews = 4096;
constexpr std::uint64_t kNewViews = 32'768;
constexpr std::uint64_t kOtherPeople = 100'000;
constexpr std::uint64_t kPromptedPeople = 150'000;
constexpr std::uint64_t kClassPeople = 200'000;
constexpr std::uint64_t kComparedPeople = 300'000;

// What generates, and its name in errors.
struct NamedModel {
  const GenerateImages& generate;
  const std::string& name;
};

std::vector<std::size_t> each_prompt(std::int64_t times) {
  std::vector<std::size_t> prompts;
  for (std::size_t prompt = 0; prompt < eval_prompts().size(); ++prompt) {
    prompts.insert(prompts.end(), static_cast<std::size_t>(times), prompt);
  }
  return prompts;
}

class Evaluator {
 public:
  Evaluator(const EvaluationTools& tools, const EvaluationPlan& plan) : tools_(tools), plan_(plan) {}

  Evaluation run(const Subject& subject, const Subject& shuffled) {
    say("renders");
    const classifier::Reading others = tools_.read(render_people(kOtherPeople, each_prompt(plan_.renders_per_prompt)));
    const Anchors anchors = anchors_of(subject, others), shuffled_anchors = anchors_of(shuffled, others);
    const PromptedReading renders = read_renders(subject.number, kNewViews);  // not those that say what 1 is
    compared_ = tools_.read(render_people(kComparedPeople, plain_prompts()));

    Evaluation result;
    result.references = subject.references;
    say("the tuned model's images");
    const NamedModel tuned_model{tools_.tuned, tools_.tuned_name}, base{tools_.base, tools_.base_name};
    const PromptedReading tuned = read_generated(tuned_model, result.tuned_images);
    result.rows.push_back({"tuned", score_subject(subject, tuned, anchors)});
    add(result.rows.back().scores, score_class(subject, read_class(tuned_model), compared_, anchors));
    result.rows.push_back({"renders", score_subject(subject, renders, anchors)});
    add(result.rows.back().scores, score_class(subject, render_class(), compared_, anchors));
    say("the base's images");
    result.rows.push_back({"base", score_subject(subject, read_generated(base, result.base_images), anchors)});
    add(result.rows.back().scores, score_class(subject, read_class(base), compared_, anchors));
    result.rows.push_back({"shuffled", score_subject(shuffled, tuned, shuffled_anchors)});
    result.accepted_of_renders = ratio(result, kAccepted, "renders");
    result.diversity_kept = ratio(result, kClassDiversity, "base");
    result.class_fidelity_kept = ratio(result, kClassFidelity, "base");
    return result;
  }

 private:
  void say(const std::string& what) const {
    if (tools_.on_phase) tools_.on_phase(what);
  }

  static void add(Scores& to, const Scores& from) {
    to.figures.insert(to.figures.end(), from.figures.begin(), from.figures.end());
  }

  // Of the tuned model's figure to the same one of `row`; 0 where that is 0.
  static double ratio(const Evaluation& result, const char* figure, const char* row) {
    const double reference = result.row(row).find(figure)->value;
    return reference > 0 ? result.row("tuned").find(figure)->value / reference : 0.0;
  }

  Anchors anchors_of(const Subject& subject, const classifier::Reading& others) {
    const PromptedReading renders = read_renders(subject.number, kAnchorViews);
    return measure_anchors(subject, renders, others, plan_.accepted_from);
  }

  // A render a prompt: of reserved person `number` in new moments ...
  PromptedReading read_renders(std::uint64_t number, std::uint64_t first_view) {
    const std::vector<std::size_t> prompts = each_prompt(plan_.renders_per_prompt);
    std::vector<portrait::Portrait> portraits;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      portraits.push_back(portrait_of(portrait::PortraitSet::kReserved, number, first_view + i, prompts[i]));
    }
    return read_prompted(tools_.render(portraits), prompts);
  }

  // ... or of another person each.
  torch::Tensor render_people(std::uint64_t first, const std::vector<std::size_t>& prompts) const {
    std::vector<portrait::Portrait> portraits;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      portraits.push_back(portrait_of(portrait::PortraitSet::kValidation, first + i, 0, prompts[i]));
    }
    return tools_.render(portraits);
  }

  portrait::Portrait portrait_of(portrait::PortraitSet set, std::uint64_t person, std::uint64_t view,
                                 std::size_t prompt) const {
    const portrait::ImageSeeds seeds = portrait::image_seeds(set, person, view);
    return {
        seeds, portrait::draw_identity(seeds.person), eval_prompts()[prompt].context(seeds.image, plan_.detail), {}};
  }

  std::vector<std::size_t> plain_prompts() const {
    return std::vector<std::size_t>(static_cast<std::size_t>(plan_.class_images), 0);
  }

  // Image i of these prompts has the seed plan.seed + i.
  torch::Tensor draw(const NamedModel& model, const std::vector<std::size_t>& prompts, const std::string& who) const {
    std::vector<torch::Tensor> images;
    for (std::size_t first = 0; first < prompts.size(); first += kBatch) {
      std::vector<std::string> texts;
      std::vector<std::uint64_t> seeds;
      for (std::size_t i = first; i < std::min(first + kBatch, prompts.size()); ++i) {
        texts.push_back(eval_prompts()[prompts[i]].text(who));
        seeds.push_back(plan_.seed + i);
      }
      images.push_back(model.generate(texts, seeds));
      if (images.back().isfinite().all().item<bool>()) continue;
      throw DataError(model.name, "generates images with numbers that are not finite",
                      "did its training diverge? A smaller learning_rate helps; --dtype float32 overflows last");
    }
    return torch::cat(images);
  }

  // The first image of each prompt goes to `shown`.
  PromptedReading read_generated(const NamedModel& model, torch::Tensor& shown) {
    const std::vector<std::size_t> prompts = each_prompt(plan_.images_per_prompt);
    const torch::Tensor images = draw(model, prompts, plan_.subject_words);
    shown = images.slice(0, 0, images.size(0), plan_.images_per_prompt).to(torch::kCPU, torch::kFloat32);
    return read_prompted(images, prompts);
  }

  torch::Tensor resized(const torch::Tensor& images) const {
    return classifier::resized_images(images.to(torch::kCPU, torch::kFloat32), plan_.side);
  }

  // With the faces' sharpness where the classifier finds landmarks.
  PromptedReading read_prompted(const torch::Tensor& images, const std::vector<std::size_t>& prompts) const {
    PromptedReading read{tools_.read(images), prompts, {}};
    if (read.reading.landmarks.defined() && read.reading.landmarks.size(1) > 0)
      read.face_energy = face_gradient_energy(resized(images), read.reading);
    return read;
  }

  ClassReading read_class(const NamedModel& model) {
    const std::vector<std::size_t> prompts = each_prompt(plan_.class_images_per_prompt);
    return {tools_.read(draw(model, plain_prompts(), plan_.class_words)),
            {tools_.read(draw(model, prompts, plan_.class_words)), prompts, {}}};
  }

  ClassReading render_class() {
    const std::vector<std::size_t> prompts = each_prompt(plan_.class_images_per_prompt);
    return {tools_.read(render_people(kClassPeople, plain_prompts())),
            {tools_.read(render_people(kPromptedPeople, prompts)), prompts, {}}};
  }

  const EvaluationTools& tools_;
  const EvaluationPlan& plan_;
  classifier::Reading compared_;  // renders that Q compares with
};

}  // namespace

const Scores& Evaluation::row(const std::string& name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const EvaluationRow& row) { return row.name == name; });
  if (found == rows.end()) throw std::invalid_argument("no row " + name);
  return found->scores;
}

Evaluation evaluate(const Subject& subject, const Subject& shuffled, const EvaluationTools& tools,
                    const EvaluationPlan& plan) {
  if (subject.number == shuffled.number) throw std::invalid_argument("shuffled must be another subject");
  return Evaluator(tools, plan).run(subject, shuffled);
}

}  // namespace sdtune::train::evaluate
