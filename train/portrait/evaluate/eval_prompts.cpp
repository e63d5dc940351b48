#include "train/portrait/evaluate/eval_prompts.h"

#include "train/identity/identity_prompts.h"

#include <algorithm>
#include <stdexcept>

namespace sdtune::train::evaluate {
namespace {

using classifier::Head;
using portrait::Clothes;
using portrait::Color;
using portrait::Context;
using portrait::Expression;
using portrait::Glasses;
using portrait::Hat;
using portrait::Place;
using portrait::Style;

template <typename Enum>
Asked ask(Head head, Enum shown) {
  return {head, static_cast<std::int64_t>(shown)};
}

void show(const Asked& asked, Context& now) {
  switch (asked.head) {
    case Head::kHat:
      now.hat = static_cast<Hat>(asked.shown);
      return;
    case Head::kHatColor:
      now.hat_color = static_cast<Color>(asked.shown);
      return;
    case Head::kGlasses:
      now.glasses = static_cast<Glasses>(asked.shown);
      return;
    case Head::kClothes:
      now.clothes = static_cast<Clothes>(asked.shown);
      return;
    case Head::kClothesColor:
      now.clothes_color = static_cast<Color>(asked.shown);
      return;
    case Head::kPlace:
      now.place = static_cast<Place>(asked.shown);
      return;
    case Head::kWallColor:
      now.wall_color = static_cast<Color>(asked.shown);
      return;
    case Head::kStyle:
      now.style = static_cast<Style>(asked.shown);
      return;
    default:
      throw std::invalid_argument("no prompt asks for this head");
  }
}

}  // namespace

bool EvalPrompt::asks(Head head) const {
  return std::any_of(asked.begin(), asked.end(), [&](const Asked& one) { return one.head == head; });
}

Context EvalPrompt::context(std::uint64_t image_seed, portrait::Detail detail) const {
  Context now = portrait::draw_context(image_seed, detail);
  now.hat = Hat::kNone;
  now.glasses = Glasses::kNone;
  now.expression = Expression::kNeutral;
  now.style = Style::kPhoto;
  for (const Asked& one : asked) show(one, now);
  return now;
}

const std::vector<EvalPrompt>& eval_prompts() {
  static const std::vector<EvalPrompt> prompts = {
      {"a photo of", "", {}},
      {"a photo of", " on a beach", {ask(Head::kPlace, Place::kBeach)}},
      {"a photo of", " in a forest", {ask(Head::kPlace, Place::kForest)}},
      {"a photo of", " in a city at night", {ask(Head::kPlace, Place::kCityNight)}},
      {"a photo of", " in snowy mountains", {ask(Head::kPlace, Place::kMountains)}},
      {"a photo of", " in front of a brick wall", {ask(Head::kPlace, Place::kBricks)}},
      {"a photo of",
       " in front of a yellow wall",
       {ask(Head::kPlace, Place::kWall), ask(Head::kWallColor, Color::kYellow)}},
      {"a pencil sketch of", "", {ask(Head::kStyle, Style::kSketch)}},
      {"a black and white photo of", "", {ask(Head::kStyle, Style::kBlackWhite)}},
      {"a cartoon of", "", {ask(Head::kStyle, Style::kCartoon)}},
      {"a photo of", " wearing a green beanie", {ask(Head::kHat, Hat::kBeanie), ask(Head::kHatColor, Color::kGreen)}},
      {"a photo of", " wearing a red top hat", {ask(Head::kHat, Hat::kTopHat), ask(Head::kHatColor, Color::kRed)}},
      {"a photo of", " wearing sunglasses", {ask(Head::kGlasses, Glasses::kSunglasses)}},
      {"a photo of",
       " wearing an orange hoodie",
       {ask(Head::kClothes, Clothes::kHoodie), ask(Head::kClothesColor, Color::kOrange)}}};
  return prompts;
}

const std::vector<std::vector<Asked>>& asked_of_identity_prompts() {
  static const std::vector<std::vector<Asked>> asked = {
      {ask(Head::kPlace, Place::kWall), ask(Head::kWallColor, Color::kBlue)},
      {ask(Head::kPlace, Place::kBeach)},
      {ask(Head::kClothes, Clothes::kTShirt), ask(Head::kClothesColor, Color::kRed)},
      {ask(Head::kPlace, Place::kForest)},
      {ask(Head::kClothes, Clothes::kJacket), ask(Head::kClothesColor, Color::kBlue)},
      {ask(Head::kPlace, Place::kWall), ask(Head::kWallColor, Color::kGreen)},
      {ask(Head::kHat, Hat::kCap), ask(Head::kHatColor, Color::kWhite)},
      {ask(Head::kStyle, Style::kSketch)}};
  return asked;
}

std::vector<EvalPrompt> readable_identity_prompts() {
  std::vector<EvalPrompt> prompts;
  for (std::size_t i = 0; i < identity_prompts().size(); ++i) {
    const IdentityPrompt& prompt = identity_prompts()[i];
    prompts.push_back({prompt.opening, prompt.details, asked_of_identity_prompts().at(i)});
  }
  return prompts;
}

const EvalPrompt& plain_prompt() {
  return eval_prompts().front();
}

}  // namespace sdtune::train::evaluate
