#include "train/portrait/pretrain/prompt_curve.h"

#include <algorithm>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/generate/image_generator.h"
#include "train/observe/append_file.h"
#include "train/portrait/renderer/caption.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kGeneratedAtOnce = 16;

// The marks have no words.
bool has_words(classifier::Head head) {
  return head < classifier::Head::kStreak;
}

// A neutral face is not spoken of, and a missing hat, pair of glasses or beard only by leaving it out.
bool is_asked(classifier::Head head, std::int64_t shown) {
  return has_words(head) && !(head == classifier::Head::kExpression && shown == 0);
}

}  // namespace

torch::Tensor generate_prompted(model::ModelBundle& bundle, const std::vector<portrait::Portrait>& prompted,
                                const PromptGeneration& generation) {
  model::GenerateOptions options;
  options.prompt_syntax = "plain";
  options.steps = generation.steps;
  options.guidance_scale = generation.guidance_scale;
  model::ImageGenerator generator(bundle);
  std::vector<torch::Tensor> images;
  for (std::size_t begin = 0; begin < prompted.size(); begin += kGeneratedAtOnce) {
    std::vector<std::string> prompts;
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = begin; i < std::min(begin + kGeneratedAtOnce, prompted.size()); ++i) {
      prompts.push_back(prompted[i].caption);
      seeds.push_back(i);
    }
    images.push_back(generator.generate(options, std::move(prompts), std::move(seeds)));
  }
  return torch::cat(images) * 2.0 - 1.0;
}

std::vector<portrait::Portrait> prompted_people(std::int64_t count, portrait::Detail detail) {
  std::vector<portrait::Portrait> people;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = portrait::kValidationSeeds + static_cast<std::uint64_t>(i);
    portrait::Portrait one = portrait::draw_portrait({seed, seed}, detail);
    one.caption = portrait::full_caption(one.who, one.now, seed);
    people.push_back(std::move(one));
  }
  return people;
}

PromptAccuracy prompt_accuracy(const std::vector<portrait::Portrait>& prompted, const classifier::Reading& reading) {
  PromptAccuracy accuracy;
  accuracy.images = static_cast<std::int64_t>(prompted.size());
  for (std::size_t h = 0; h < classifier::kHeadCount; ++h) {
    const auto head = static_cast<classifier::Head>(h);
    const torch::Tensor read = reading.classes(head);
    const classifier::HeadInfo& info = classifier::head_info(head);
    Asked all;
    for (std::size_t i = 0; i < prompted.size(); ++i) {
      const std::optional<std::int64_t> shown = classifier::visible_class(head, prompted[i]);
      if (!shown || !is_asked(head, *shown)) continue;
      const std::int64_t is_right = read[static_cast<std::int64_t>(i)].item<std::int64_t>() == *shown ? 1 : 0;
      const std::string name(info.classes[static_cast<std::size_t>(*shown)]);
      Asked& of_class = accuracy.by_class[std::string(info.name)][name];
      for (Asked* count : {&all, &of_class}) {
        ++count->asked;
        count->right += is_right;
      }
    }
    if (all.asked > 0) accuracy.by_head[std::string(info.name)] = all.share();
  }
  for (const auto& [name, share] : accuracy.by_head) {
    accuracy.mean += share / static_cast<double>(accuracy.by_head.size());
  }
  return accuracy;
}

PromptCurve::PromptCurve(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier,
                         std::filesystem::path folder, std::int64_t images)
    : bundle_(bundle),
      classifier_(classifier),
      folder_(std::move(folder)),
      prompted_(prompted_people(images, classifier.design().detail)) {}

PromptAccuracy PromptCurve::evaluate(std::int64_t step) {
  const PromptAccuracy accuracy =
      prompt_accuracy(prompted_, classifier_.read(generate_prompted(bundle_, prompted_, {})));
  Json line = {{"step", step}, {"pictures", accuracy.images}, {"mean", accuracy.mean}};
  for (const auto& [name, share] : accuracy.by_head) line[name] = share;
  AppendFile file;
  const std::filesystem::path path = folder_ / "curve.jsonl";
  std::string failure = file.open(path);
  if (failure.empty()) failure = file.append(line.dump() + "\n");
  if (!failure.empty()) throw StorageError(path.string(), failure);
  return accuracy;
}

}  // namespace sdtune::train::pretrain
