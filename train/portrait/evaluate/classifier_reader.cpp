#include "train/portrait/evaluate/classifier_reader.h"

#include <utility>

#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/evaluate/eval_prompts.h"
#include "train/portrait/renderer/caption.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::size_t kOtherImages = 64;
// Neither people of `eval` nor people whom the classifier was measured on.
constexpr std::uint64_t kFirstOther = 400'000;

// [kOtherImages, 3, S, S]: another person each, in what the prompts ask for.
torch::Tensor render_others(const classifier::ClassifierDesign& design) {
  std::vector<portrait::Portrait> portraits;
  const std::vector<EvalPrompt> prompts = readable_identity_prompts();
  for (std::size_t i = 0; i < kOtherImages; ++i) {
    const portrait::ImageSeeds seeds = portrait::image_seeds(portrait::PortraitSet::kValidation, kFirstOther + i, 0);
    const EvalPrompt& prompt = prompts[i % prompts.size()];
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.image, design.detail), {}});
  }
  return classifier::portrait_images(portraits, design.size, 1);
}

template <typename Enum>
void take(const classifier::Reading& reading, classifier::Head head, std::int64_t image, Enum& value) {
  value = static_cast<Enum>(reading.classes(head)[image].item<std::int64_t>());
}

// What is the most probable, of that image.
portrait::Context context_of(const classifier::Reading& reading, std::int64_t image) {
  using classifier::Head;
  portrait::Context now;
  take(reading, Head::kHat, image, now.hat);
  take(reading, Head::kHatColor, image, now.hat_color);
  take(reading, Head::kGlasses, image, now.glasses);
  take(reading, Head::kClothes, image, now.clothes);
  take(reading, Head::kClothesColor, image, now.clothes_color);
  take(reading, Head::kExpression, image, now.expression);
  take(reading, Head::kPlace, image, now.place);
  take(reading, Head::kWallColor, image, now.wall_color);
  take(reading, Head::kStyle, image, now.style);
  return now;
}

}  // namespace

ClassifierReader::ClassifierReader(classifier::PortraitClassifier classifier) : classifier_(std::move(classifier)) {}

torch::Tensor ClassifierReader::embed(const std::vector<torch::Tensor>& photos) {
  return classifier_.read(torch::stack(photos)).embedding;
}

std::vector<std::string> ClassifierReader::describe(const std::vector<torch::Tensor>& photos) {
  const classifier::Reading reading = classifier_.read(torch::stack(photos));
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(photos.size()); ++i) {
    words.push_back(portrait::context_words(context_of(reading, i)));
  }
  return words;
}

torch::Tensor ClassifierReader::others(const std::string&) {
  if (!others_.defined()) others_ = classifier_.read(render_others(classifier_.design())).embedding;
  return others_;
}

IdentityReading ClassifierReader::read(const torch::Tensor& drawn, const std::vector<IdentityImage>& images) {
  const classifier::Reading reading = classifier_.read(drawn);
  const auto count = static_cast<std::int64_t>(images.size());
  IdentityReading result{reading.embedding, torch::zeros({count}, torch::kFloat64),
                         torch::zeros({count}, torch::kFloat64)};
  auto asked = result.asked.accessor<double, 1>(), shown = result.shown.accessor<double, 1>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::optional<std::size_t> prompt = images[static_cast<std::size_t>(i)].asked;
    if (!prompt) continue;
    for (const Asked& one : asked_of_identity_prompts().at(*prompt)) {
      asked[i] += 1;
      shown[i] += reading.classes(one.head)[i].item<std::int64_t>() == one.shown ? 1 : 0;
    }
  }
  return result;
}

std::optional<double> ClassifierReader::pair_threshold() const {
  return classifier_.figures().by_pair.threshold;
}

std::optional<double> ClassifierReader::threshold() const {
  return classifier_.figures().by_references.threshold;
}

}  // namespace sdtune::train::evaluate
