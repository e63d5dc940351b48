#include "model/image/png_text.h"

#include <gtest/gtest.h>

#include "model/image/ai_mark.h"
#include "model/image/png_write.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

Image grey(std::int64_t side) {
  return {side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * side * side), 99)};
}

TEST(PngText, FindsWhatWritePngWrote) {
  const std::string png = encode_png(grey(4), {{"Software", "sdtune 1"}, {"Soft", "other"}, {"Empty", ""}});
  EXPECT_EQ(find_png_text(png, "Software"), "sdtune 1");
  EXPECT_EQ(find_png_text(png, "Soft"), "other");
  EXPECT_EQ(find_png_text(png, "Empty"), "");
  EXPECT_EQ(find_png_text(png, "Softwar"), std::nullopt);
}

TEST(PngText, FindsNothingInOtherBytes) {
  const std::string png = encode_png(grey(4), {{"Software", "sdtune 1"}});
  EXPECT_EQ(find_png_text("", "Software"), std::nullopt);
  EXPECT_EQ(find_png_text("Software\0sdtune", "Software"), std::nullopt);
  for (std::size_t size = 0; size < png.size(); ++size) {
    const auto found = find_png_text(std::string_view(png).substr(0, size), "Software");
    EXPECT_TRUE(!found || *found == "sdtune 1") << size;  // never part of it
  }
}

TEST(PngText, FindsTextsBeyondAscii) {
  const std::string png = encode_png(grey(4), {{"parameters",
                                                "ein M\xC3\xA4"
                                                "dchen"},
                                               ai_generated_mark()});
  EXPECT_NE(png.find("iTXtparameters"), std::string::npos);
  EXPECT_EQ(find_png_text(png, "parameters"),
            "ein M\xC3\xA4"
            "dchen");
  EXPECT_EQ(find_png_text(png, ai_generated_mark().key), ai_generated_mark().value);
  for (std::size_t size = 0; size < png.size(); ++size) {
    const auto found = find_png_text(std::string_view(png).substr(0, size), "parameters");
    EXPECT_TRUE(!found || found->ends_with("dchen")) << size;
  }
  // tEXt is Latin-1, which other programs write: \xE4 is an a with two dots.
  std::string latin = encode_png(grey(4), {{"parameters", "M#dchen"}});
  latin[latin.find("M#dchen") + 1] = '\xE4';
  EXPECT_EQ(find_png_text(latin, "parameters"),
            "M\xC3\xA4"
            "dchen");
}

TEST(PngText, TellsOurImagesFromOthers) {
  EXPECT_TRUE(is_made_by_sdtune(encode_png(grey(200), {{"Software", "sdtune 0.1.0"}})));
  EXPECT_FALSE(is_made_by_sdtune(encode_png(grey(8), {{"Software", "Camera sdtune"}})));
  EXPECT_FALSE(is_made_by_sdtune(encode_png(grey(8))));
  EXPECT_FALSE(is_made_by_sdtune("\xFF\xD8\xFF\xE0 sdtune"));
}

}  // namespace
}  // namespace sdtune::model
