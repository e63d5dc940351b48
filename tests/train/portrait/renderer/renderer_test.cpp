#include "train/portrait/renderer/renderer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "model/base/json.h"
#include "model/files/sha256.h"
#include "train/portrait/renderer/caption.h"
#include "train/portrait/renderer/label.h"

namespace sdtune::train::portrait {
namespace {

std::string hash_of(const Image& image) {
  return sha256_hex({reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size()});
}

double mean_difference(const Image& a, const Image& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(int{a.rgb[i]} - int{b.rgb[i]});
  return sum / static_cast<double>(a.rgb.size());
}

// The same bytes on every x86-64 processor: these were also reached at -O1 and with AVX-512 code.
TEST(Renderer, RendersTheGoldenImages) {
  const char* kGolden[] = {"6e235460addcb1bbfdd30d4dc674607770993d7d163bd8eaede95437336d30cb",
                           "b2c158d448ac83649cc2098d7b068d4a980c275f3c2ba25c32e8e15e36c7ad5a",
                           "9690ff562b1d97534afe46e5c394fb8b9b85255d6ed0785cfe868ee6d0632729",
                           "9144671dd8db8eb5f33ce3e058f7e8b84f1f6096bdf54c1ad01d9569b26ad271"};
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(hash_of(render(draw_identity(100 + i), draw_context(500 + i), 64)), kGolden[i]) << i;
  }
}

TEST(Renderer, RendersTheGoldenImagesOfTheFinerDetail) {
  const char* kGolden[] = {"cc34b3cbb6975cda2c062c300bae38aa37d256dff850b2967b522c6474ac6f22",
                           "c36b4330aa3d8c8c1823b4cfc38190bde30b0c426af7b33e9674be1e7ee5c911",
                           "f9c38ee0a90684dc027d6f45bdfe11271b2f03658ed598e6d1f0e895e8e961c4",
                           "12169013452958884dba9a45dc5cb50f5705aa3f7f23793fa2a0add1dd3623fb"};
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Context now = draw_context(500 + i, Detail::k128);
    EXPECT_EQ(hash_of(render(draw_identity(100 + i), now, 128)), kGolden[i]) << i;
  }
}

// Every seed is another person, and the same person again is the same bits.
TEST(Renderer, ShowsAnotherPersonForEverySeed) {
  std::set<std::string> hashes;
  Context now = draw_context(500, Detail::k128);
  now.style = Style::kPhoto;
  for (std::uint64_t seed = 0; seed < 12; ++seed) hashes.insert(hash_of(render(draw_identity(seed), now, 64)));
  EXPECT_EQ(hashes.size(), 12u);
  hashes.insert(hash_of(render(draw_identity(3), now, 64)));
  EXPECT_EQ(hashes.size(), 12u);
  Context coarse = now;
  coarse.detail = Detail::k64;
  EXPECT_GT(mean_difference(render(draw_identity(3), now, 64), render(draw_identity(3), coarse, 64)), 3.0);
}

TEST(Renderer, RefusesSizesItCannotRender) {
  EXPECT_THROW(render(draw_identity(1), draw_context(1), 15), std::invalid_argument);
  EXPECT_THROW(render(draw_identity(1), draw_context(1), 1025), std::invalid_argument);
}

class RendererOf : public testing::TestWithParam<Detail> {};

INSTANTIATE_TEST_SUITE_P(Details, RendererOf, testing::Values(Detail::k64, Detail::k128));

TEST_P(RendererOf, ShowsEveryAttributeThatACaptionNames) {
  const Identity who = draw_identity(7);
  Context base = draw_context(7, GetParam());
  base.style = Style::kPhoto;
  base.hat = Hat::kNone;
  base.glasses = Glasses::kNone;
  base.expression = Expression::kNeutral;
  const Image plain = render(who, base, 64);
  const auto changed = [&](auto&& change) {
    Context now = base;
    change(now);
    return mean_difference(plain, render(who, now, 64));
  };
  EXPECT_GT(changed([](Context& c) { c.hat = Hat::kBeanie; }), 1.0);
  EXPECT_GT(changed([](Context& c) { c.hat = Hat::kWideHat; }), 1.0);
  EXPECT_GT(changed([](Context& c) { c.glasses = Glasses::kSunglasses; }), 0.5);
  EXPECT_GT(changed([](Context& c) { c.expression = Expression::kLaugh; }), 0.1);
  EXPECT_GT(
      changed([](Context& c) { c.clothes = c.clothes == Clothes::kHoodie ? Clothes::kTShirt : Clothes::kHoodie; }),
      0.3);
  EXPECT_GT(changed([](Context& c) { c.place = c.place == Place::kBeach ? Place::kBricks : Place::kBeach; }), 5.0);
  EXPECT_GT(changed([](Context& c) { c.style = Style::kSketch; }), 5.0);
  EXPECT_EQ(changed([](Context&) {}), 0.0);
}

TEST(Person, RangesOfSeedsAreDisjoint) {
  EXPECT_EQ(kTrainingSeeds, 0u);
  EXPECT_GE(kValidationSeeds, kTrainingSeeds + (std::uint64_t{1} << 32));
  EXPECT_GE(kReservedSeeds, kValidationSeeds + (std::uint64_t{1} << 32));
  EXPECT_GT(kReservedSeeds + kReservedCount, kReservedSeeds);
  EXPECT_NE(draw_identity(kReservedSeeds).skin_tone, draw_identity(kTrainingSeeds).skin_tone);
}

// No group of people is tied to any trait: over many people the correlations are those of chance.
TEST(Person, TraitsAreDrawnIndependentlyOfSkinTone) {
  constexpr int kPeople = 4000;
  double hair = 0, beard = 0, dark_square = 0, hair_square = 0, beard_square = 0;
  for (int i = 0; i < kPeople; ++i) {
    const Identity who = draw_identity(static_cast<std::uint64_t>(i));
    const double dark = who.skin_tone - 0.5;
    const double style = static_cast<double>(who.hair_style) - 3.5, face = static_cast<double>(who.facial_hair) - 1.5;
    hair += dark * style;
    beard += dark * face;
    dark_square += dark * dark;
    hair_square += style * style;
    beard_square += face * face;
  }
  EXPECT_LT(std::abs(hair) / std::sqrt(dark_square * hair_square), 0.06);
  EXPECT_LT(std::abs(beard) / std::sqrt(dark_square * beard_square), 0.06);
}

TEST(Caption, NamesThePersonAndWhatIsSeenButNeverTheMarks) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Identity who = draw_identity(seed);
    const Context now = draw_context(seed);
    const std::string text = caption(who, now, seed);
    texts.insert(full_caption(who, now, seed));
    EXPECT_NE(text.find("person"), std::string::npos) << text;
    for (const char* never : {"sks", "birthmark", "mole", "scar", "freckles", "earring", "skin"}) {
      EXPECT_EQ(text.find(never), std::string::npos) << text;
    }
    if (now.hat == Hat::kNone) {
      EXPECT_EQ(text.find(" hat"), std::string::npos) << text;
    }
    if (now.glasses == Glasses::kNone) {
      EXPECT_EQ(text.find("glasses"), std::string::npos) << text;
    }
  }
  EXPECT_GT(texts.size(), 290u);
}

// Prompts of a few words are what people write: a base that never read any follows them badly.
TEST(Caption, FewWordsAreCommonButNothingIsLeftOutOfFullCaptions) {
  constexpr int kCaptions = 2000;
  int bare = 0, place_or_face = 0;
  for (std::uint64_t seed = 0; seed < kCaptions; ++seed) {
    const Identity who = draw_identity(seed);
    const Context now = draw_context(seed);
    const std::string text = caption(who, now, seed);
    const bool named = text.find("wearing") != std::string::npos || text.find(" with ") != std::string::npos;
    const bool is_bare = text.ends_with("person");
    bare += is_bare ? 1 : 0;
    place_or_face += !named && !is_bare ? 1 : 0;
    EXPECT_NE(full_caption(who, now, seed).find("wearing"), std::string::npos);
  }
  EXPECT_GT(bare, kCaptions / 20);
  EXPECT_LT(bare, kCaptions / 4);
  EXPECT_GT(place_or_face, kCaptions / 50);
}

TEST(Label, IsOneLineOfJsonWithEveryAttribute) {
  const std::string line = label_line("0.png", "a person", {3, 4}, draw_identity(3), draw_context(4));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Json json = parse_json(line, "label");
  EXPECT_EQ(json["person_seed"], 3);
  EXPECT_EQ(json["detail"], "64");
  EXPECT_EQ(json["identity"].size(), 27u);
  EXPECT_TRUE(json["context"].contains("hat_color"));
}

TEST(Label, NamesTheFinerDetailAndWhatItShows) {
  const Identity who = draw_identity(3);
  const std::string line = label_line("0.png", "a person", {3, 4}, who, draw_context(4, Detail::k128));
  const Json json = parse_json(line, "label");
  EXPECT_EQ(json["detail"], "128");
  EXPECT_EQ(json["identity"].size(), 29u);
  EXPECT_EQ(json["identity"]["age"], who.age);
  EXPECT_EQ(json["identity"]["stubble"], who.stubble);
}

}  // namespace
}  // namespace sdtune::train::portrait
