#include "model/lora/lora_layers.h"

#include <gtest/gtest.h>

namespace sdtune::model {
namespace {

TEST(SelectsLayer, ByTheLastNamesOfThePath) {
  const std::string path = "unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_out.0";
  for (const char* pattern :
       {"to_out.0", "attn2.to_out.0", "mid_block.*.to_out.0", "*attn2*", "unet.*.attn2.to_out.0"}) {
    EXPECT_TRUE(selects_layer(pattern, path)) << pattern;
  }
  for (const char* pattern : {"to_out", "0.to_out.0", "attn1.to_out.0", "down_blocks.*.to_out.0", "out.0", ""}) {
    EXPECT_FALSE(selects_layer(pattern, path)) << pattern;
  }
}

TEST(SelectsLayer, TakesAnyNumberOfStars) {
  const std::string path = "unet.mid_block.attentions.0.proj_in";
  EXPECT_TRUE(selects_layer(std::string(1'000'000, '*'), path));
  EXPECT_TRUE(selects_layer("unet*o*e*o*i*n", path));
  EXPECT_FALSE(selects_layer("unet*o*e*o*i*x", path));
  EXPECT_TRUE(selects_layer("a*ab", "unet.aab"));  // not with the first letters that fit
  std::string slow;
  for (int i = 0; i < 40; ++i) slow += "*a";
  EXPECT_FALSE(selects_layer(slow + "b", std::string(80, 'a')));  // each '*' by itself has 80 places
}

}  // namespace
}  // namespace sdtune::model
