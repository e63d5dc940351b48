#include "train/portrait/renderer/caption.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/philox.h"

namespace sdtune::train::portrait {
namespace {

constexpr std::uint32_t kCaptionDraws = 0x776f7264;  // "word"
// People ask in few words ("a photo of a person on a beach"): three captions in ten keep only some of theirs.
constexpr std::uint32_t kShortPercent = 30;
constexpr std::uint32_t kShortLeftOutPercent = 75;

// Draws in order; a caption's draws belong to it alone.
class Words {
 public:
  // complete: nothing is left out.
  Words(std::uint64_t seed, bool complete)
      : seed_(seed), complete_(complete), short_(draw(/*index=*/0, /*stream=*/1, 100) < kShortPercent) {}
  std::uint32_t below(std::uint32_t count) { return draw(next_++, /*stream=*/0, count); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  bool leave_out(std::uint32_t percent) {
    return chance(short_ ? std::max(percent, kShortLeftOutPercent) : percent) && !complete_;
  }
  std::string pick(std::initializer_list<std::string_view> choices) {
    return std::string(choices.begin()[below(static_cast<std::uint32_t>(choices.size()))]);
  }

 private:
  std::uint32_t draw(std::uint32_t index, std::uint32_t stream, std::uint32_t count) const {
    const std::uint32_t word = philox4x32({{index, kCaptionDraws, stream, 0}}, static_cast<std::uint32_t>(seed_),
                                          static_cast<std::uint32_t>(seed_ >> 32))
                                   .word[0];
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * count) >> 32);
  }

  std::uint64_t seed_;
  bool complete_;
  bool short_;
  std::uint32_t next_ = 0;
};

std::string with_article(const std::string& noun) {
  return (std::string_view("aeiou").find(noun.front()) == std::string_view::npos ? "a " : "an ") + noun;
}

std::string opening(Words& words, Style style) {
  switch (style) {
    case Style::kPhoto:
      return words.pick({"a photo of a person", "a portrait of a person", "a picture of a person", "a person"});
    case Style::kBlackWhite:
      return words.pick({"a black and white photo of a person", "a monochrome portrait of a person"});
    case Style::kSketch:
      return words.pick({"a pencil sketch of a person", "a pencil drawing of a person"});
    case Style::kCartoon:
      return words.pick({"a cartoon of a person", "a comic drawing of a person"});
  }
  return {};
}

std::string place_words(Words& words, const Context& now) {
  switch (now.place) {
    case Place::kWall:
      return words.pick({"in front of ", "against "}) + "a " + name_of(kColorNames, now.wall_color) + " " +
             words.pick({"wall", "background"});
    case Place::kBeach:
      return words.pick({"on a beach", "at the beach", "by the sea"});
    case Place::kForest:
      return words.pick({"in a forest", "in the woods"});
    case Place::kCityNight:
      return words.pick({"in a city at night", "in front of city lights at night"});
    case Place::kMountains:
      return words.pick({"in snowy mountains", "in front of snowy mountains"});
    case Place::kBricks:
      return words.pick({"in front of a brick wall", "against a brick wall"});
  }
  return {};
}

std::string hat_words(Words& words, const Context& now) {
  std::string noun;
  switch (now.hat) {
    case Hat::kNone:
      return {};
    case Hat::kBeanie:
      noun = words.pick({"beanie", "woolly hat"});
      break;
    case Hat::kCap:
      noun = words.pick({"cap", "baseball cap"});
      break;
    case Hat::kTopHat:
      noun = "top hat";
      break;
    case Hat::kWideHat:
      noun = words.pick({"wide-brimmed hat", "sun hat"});
      break;
  }
  if (words.leave_out(30)) noun = "hat";
  return with_article(name_of(kColorNames, now.hat_color) + " " + noun);
}

std::string glasses_words(Words& words, const Context& now) {
  switch (now.glasses) {
    case Glasses::kNone:
      return {};
    case Glasses::kRound:
      return words.leave_out(30) ? "glasses" : "round glasses";
    case Glasses::kSquare:
      return words.leave_out(30) ? "glasses" : "square glasses";
    case Glasses::kSunglasses:
      return words.pick({"sunglasses", "dark sunglasses"});
  }
  return {};
}

std::string clothes_words(Words& words, const Context& now) {
  const std::string color = name_of(kColorNames, now.clothes_color) + " ";
  switch (now.clothes) {
    case Clothes::kTShirt:
      return with_article(color + words.pick({"t-shirt", "tee"}));
    case Clothes::kStripedSweater:
      return with_article(color + words.pick({"striped sweater", "striped pullover"}));
    case Clothes::kHoodie:
      return with_article(color + "hoodie");
    case Clothes::kShirt:
      return with_article(color + words.pick({"shirt", "button shirt"}));
    case Clothes::kJacket:
      return with_article(color + words.pick({"jacket with a tie", "suit"}));
  }
  return {};
}

std::string expression_words(Words& words, Expression expression) {
  switch (expression) {
    case Expression::kNeutral:
      return {};
    case Expression::kSmile:
      return "smiling";
    case Expression::kLaugh:
      return "laughing";
    case Expression::kSad:
      return words.pick({"looking sad", "frowning"});
    case Expression::kSurprised:
      return "looking surprised";
  }
  return {};
}

std::string hair_words(Words& words, const Identity& who) {
  if (who.hair_style == HairStyle::kBald) return words.pick({"a bald head", "no hair"});
  const std::string color = name_of(kHairColorNames, who.hair_color) + " ";
  switch (who.hair_style) {
    case HairStyle::kAfro:
      return color + words.pick({"afro hair", "curly hair"});
    case HairStyle::kBob:
      return "a " + color + "bob";
    case HairStyle::kBun:
      return color + "hair in a bun";
    case HairStyle::kMohawk:
      return "a " + color + "mohawk";
    case HairStyle::kQuiff:
      return "a " + color + "quiff";
    default:
      return (words.leave_out(40) ? std::string() : name_of(kHairStyleNames, who.hair_style) + " ") + color + "hair";
  }
}

std::string facial_hair_words(const Identity& who) {
  return who.facial_hair == FacialHair::kNone ? std::string() : "a " + name_of(kFacialHairNames, who.facial_hair);
}

// "a, b and c"
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

void shuffle(Words& words, std::vector<std::string>& parts) {
  for (std::size_t i = parts.size(); i > 1; --i)
    std::swap(parts[i - 1], parts[words.below(static_cast<std::uint32_t>(i))]);
}

// Keeps what has words, each left out with the given chance.
void add(Words& words, std::vector<std::string>& parts, std::string text, std::uint32_t drop_percent) {
  const bool dropped = words.leave_out(drop_percent);
  if (!text.empty() && !dropped) parts.push_back(std::move(text));
}

std::string compose(const Identity& who, const Context& now, Words words) {
  const std::string start = opening(words, now.style);
  std::vector<std::string> has, wears, phrases;
  add(words, has, hair_words(words, who), 40);
  add(words, has, facial_hair_words(who), 30);
  add(words, wears, hat_words(words, now), 10);
  add(words, wears, glasses_words(words, now), 10);
  add(words, wears, clothes_words(words, now), 20);
  shuffle(words, has);
  shuffle(words, wears);
  if (!has.empty()) phrases.push_back("with " + listed(has));
  if (!wears.empty()) phrases.push_back("wearing " + listed(wears));
  add(words, phrases, expression_words(words, now.expression), 20);
  add(words, phrases, place_words(words, now), 10);
  shuffle(words, phrases);
  std::string text = start;
  for (const std::string& phrase : phrases) text += (words.chance(50) ? ", " : " ") + phrase;
  return text;
}

}  // namespace

std::string caption(const Identity& who, const Context& now, std::uint64_t caption_seed) {
  return compose(who, now, Words(caption_seed, /*complete=*/false));
}

std::string full_caption(const Identity& who, const Context& now, std::uint64_t caption_seed) {
  return compose(who, now, Words(caption_seed, /*complete=*/true));
}

std::string context_words(const Context& now) {
  if (now.style != Style::kPhoto) return {};
  Words words(/*seed=*/0, /*complete=*/true);
  std::vector<std::string> wears = {clothes_words(words, now)};
  add(words, wears, hat_words(words, now), 0);
  add(words, wears, glasses_words(words, now), 0);
  std::vector<std::string> phrases = {"wearing " + listed(wears)};
  add(words, phrases, expression_words(words, now.expression), 0);
  phrases.push_back(place_words(words, now));
  std::string text = phrases.front();
  for (std::size_t i = 1; i < phrases.size(); ++i) text += ", " + phrases[i];
  return text;
}

}  // namespace sdtune::train::portrait
