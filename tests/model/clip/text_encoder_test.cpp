#include "model/clip/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

ClipTextConfig small() {
  ClipTextConfig config;
  config.vocab_size = 50;
  config.hidden_size = 16;
  config.intermediate_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.eos_token_id = 40;
  return config;
}

TEST(CLIPTextModel, ParametersHaveTransformersNames) {
  ClipTextConfig config = small();
  config.with_projection = true;
  const auto parameters = CLIPTextModel(config)->named_parameters();
  for (const char* name :
       {"text_model.embeddings.token_embedding.weight", "text_model.embeddings.position_embedding.weight",
        "text_model.encoder.layers.1.self_attn.out_proj.bias", "text_model.encoder.layers.0.mlp.fc1.weight",
        "text_model.encoder.layers.0.layer_norm2.weight", "text_model.final_layer_norm.bias",
        "text_projection.weight"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  EXPECT_EQ(parameters.size(), 2 + 2 * 16 + 2 + 1);
}

TEST(CLIPTextModel, PoolsAtTheFirstEndOfText) {
  torch::manual_seed(0);
  const torch::Tensor ids = torch::tensor({{1, 40, 45, 40}, {3, 4, 40, 40}});
  ClipTextConfig config = small();
  CLIPTextModel by_id(config);
  const TextOutput output = by_id(ids);
  EXPECT_TRUE(torch::equal(output.pooled[0], output.last_hidden_state[0][1]));
  EXPECT_TRUE(torch::equal(output.pooled[1], output.last_hidden_state[1][2]));
  EXPECT_EQ(output.hidden_states.size(), 3u);
  config.eos_token_id = 2;  // the old rule: the largest id
  CLIPTextModel by_size(config);
  const TextOutput old = by_size(ids);
  EXPECT_TRUE(torch::equal(old.pooled[0], old.last_hidden_state[0][2]));
}

TEST(CLIPTextModel, SeesNoLaterToken) {
  torch::manual_seed(0);
  CLIPTextModel encoder(small());
  const torch::Tensor a = encoder(torch::tensor({{1, 2, 3, 4}})).last_hidden_state;
  const torch::Tensor b = encoder(torch::tensor({{1, 2, 3, 9}})).last_hidden_state;
  EXPECT_TRUE(torch::allclose(a.slice(1, 0, 3), b.slice(1, 0, 3), 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(a, b));
}

TEST(ClipTextConfig, RefusesNamingFileAndKey) {
  const std::vector<std::pair<const char*, Json>> faults = {{"hidden_act", "relu"},
                                                            {"model_type", "bert"},
                                                            {"num_attention_heads", 3},
                                                            {"attention_dropout", 0.1},
                                                            {"vocab_size", 0},
                                                            {"architectures", {"CLIPModel"}},
                                                            {"surprise", 1}};
  for (const auto& [key, value] : faults) {
    Json json = small().to_json();
    json[key] = value;
    try {
      (void)ClipTextConfig::from_json(json, "text_encoder/config.json");
      ADD_FAILURE() << "took " << key << " = " << value.dump();
    } catch (const WeightError& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr("text_encoder/config.json"), testing::HasSubstr(key)));
    }
  }
  EXPECT_EQ(ClipTextConfig::from_json(small().to_json(), "again"), small());
}

}  // namespace
}  // namespace sdtune::model
