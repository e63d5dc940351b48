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

}  // namespace
}  // namespace sdtune::model
