#include "train/pretrain/prompt_curve.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/pipeline/text_to_image.h"
#include "train/observe/append_file.h"
#include "train/portrait/caption.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kBatch = 16;

// The marks have no words.
bool has_words(judge::Head head) {
  return head < judge::Head::kStreak;
}

// A neutral face is not spoken of, and a missing hat, pair of glasses or beard only by leaving it out.
bool is_asked(judge::Head head, std::int64_t shown) {
  return has_words(head) && !(head == judge::Head::kExpression && shown == 0);
}

}  // namespace

torch::Tensor draw_prompted(model::ModelBundle& bundle, const std::vector<portrait::Portrait>& prompted,
                            const PromptDrawing& drawing) {
  const torch::NoGradGuard no_grad;
  const std::unique_ptr<model::Scheduler> scheduler = model::make_sampler(bundle);
  std::vector<torch::Tensor> pictures;
  for (std::size_t begin = 0; begin < prompted.size(); begin += kBatch) {
    model::SampleRequest request;
    request.seeds.clear();
    request.steps = drawing.steps;
    request.guidance_scale = drawing.guidance_scale;
    for (std::size_t i = begin; i < std::min(begin + kBatch, prompted.size()); ++i) {
      request.prompts.push_back(prompted[i].caption);
      request.seeds.push_back(i);
    }
    pictures.push_back(model::decode_latents(bundle, model::draw_latents(bundle, *scheduler, request)));
  }
  return torch::cat(pictures) * 2.0 - 1.0;
}

std::vector<portrait::Portrait> prompted_people(std::int64_t count) {
  std::vector<portrait::Portrait> people;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = portrait::kValidationSeeds + static_cast<std::uint64_t>(i);
    portrait::Portrait one = portrait::draw_portrait({seed, seed});
    one.caption = portrait::full_caption(one.who, one.now, seed);
    people.push_back(std::move(one));
  }
  return people;
}

PromptAccuracy prompt_accuracy(const std::vector<portrait::Portrait>& prompted, const judge::Reading& reading) {
  PromptAccuracy accuracy;
  accuracy.pictures = static_cast<std::int64_t>(prompted.size());
  for (std::size_t h = 0; h < judge::kHeadCount; ++h) {
    const auto head = static_cast<judge::Head>(h);
    const torch::Tensor read = reading.classes(head);
    const judge::HeadInfo& info = judge::head_info(head);
    Asked all;
    for (std::size_t i = 0; i < prompted.size(); ++i) {
      const std::optional<std::int64_t> shown = judge::visible_class(head, prompted[i]);
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

PromptCurve::PromptCurve(model::ModelBundle& bundle, judge::Judge& judge, std::filesystem::path folder,
                         std::int64_t pictures)
    : bundle_(bundle), judge_(judge), folder_(std::move(folder)), prompted_(prompted_people(pictures)) {}

PromptAccuracy PromptCurve::examine(std::int64_t step) {
  const PromptAccuracy accuracy = prompt_accuracy(prompted_, judge_.read(draw_prompted(bundle_, prompted_, {})));
  Json line = {{"step", step}, {"pictures", accuracy.pictures}, {"mean", accuracy.mean}};
  for (const auto& [name, share] : accuracy.by_head) line[name] = share;
  AppendFile file;
  const std::filesystem::path path = folder_ / "curve.jsonl";
  std::string failure = file.open(path);
  if (failure.empty()) failure = file.append(line.dump() + "\n");
  if (!failure.empty()) throw StorageError(path.string(), failure);
  return accuracy;
}

}  // namespace sdtune::train::pretrain
