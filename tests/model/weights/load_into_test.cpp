#include "model/weights/load_into.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/nn/linear.h"
#include "model/weights/safetensors_writer.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KeyMap, BringsOldAndForeignNamesToOurs) {
  const auto vae = [](const char* key) { return our_key(KeyFamily::kVae, key); };
  EXPECT_EQ(vae("encoder.mid_block.attentions.0.query.weight"), "encoder.mid_block.attentions.0.to_q.weight");
  EXPECT_EQ(vae("encoder.mid_block.attentions.0.key.bias"), "encoder.mid_block.attentions.0.to_k.bias");
  EXPECT_EQ(vae("decoder.mid_block.attentions.0.value.weight"), "decoder.mid_block.attentions.0.to_v.weight");
  EXPECT_EQ(vae("decoder.mid_block.attentions.0.proj_attn.bias"), "decoder.mid_block.attentions.0.to_out.0.bias");
  EXPECT_EQ(vae("decoder.mid_block.attentions.0.to_q.weight"), "decoder.mid_block.attentions.0.to_q.weight");
  const auto text = [](const char* key) { return our_key(KeyFamily::kTextEncoder, key); };
  EXPECT_EQ(text("encoder.layers.0.mlp.fc1.bias"), "text_model.encoder.layers.0.mlp.fc1.bias");
  EXPECT_EQ(text("final_layer_norm.weight"), "text_model.final_layer_norm.weight");
  EXPECT_EQ(text("text_model.final_layer_norm.weight"), "text_model.final_layer_norm.weight");
  EXPECT_EQ(text("text_projection.weight"), "text_projection.weight");
  EXPECT_EQ(text("text_model.embeddings.position_ids"), "");
  EXPECT_EQ(text("logit_scale"), "");
  EXPECT_EQ(our_key(KeyFamily::kUNet, "module.conv_in._orig_mod.weight"), "conv_in.weight");
}

class TwoLayers : public torch::nn::Module {
 public:
  TwoLayers() {
    register_module("first", Linear(3, 2));
    register_module("second", Linear(2, 2));
  }
};

class LoadInto : public ::testing::Test {
 protected:
  NamedTensors whole() const {
    return {{"first.weight", torch::full({2, 3}, 1.5)},
            {"first.bias", torch::full({2}, 2.5)},
            {"second.weight", torch::full({2, 2}, 3.5)},
            {"second.bias", torch::full({2}, 4.5)}};
  }
  TensorSource source(const NamedTensors& tensors) const {
    const auto path = scratch_.path() / "w.safetensors";
    write_safetensors(real_file_system(), path, tensors);
    return TensorSource::of_file(path);
  }
  std::string refusal(const NamedTensors& tensors) {
    const auto before = module_.parameters().front().clone();
    try {
      load_into(module_, source(tensors), KeyFamily::kUNet);
    } catch (const WeightError& error) {
      EXPECT_TRUE(torch::equal(before, module_.parameters().front())) << "the module was touched";
      return error.what();
    }
    return "was accepted";
  }

  test::ScratchFolder scratch_;
  TwoLayers module_;
};

TEST_F(LoadInto, CopiesEveryTensorAndSaysSo) {
  const LoadReport report = load_into(module_, source(whole()), KeyFamily::kUNet);
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.matched, ElementsAre("first.bias", "first.weight", "second.bias", "second.weight"));
  for (const auto& [name, tensor] : whole())
    EXPECT_TRUE(torch::equal(module_.named_parameters()[name], tensor)) << name;
}

TEST_F(LoadInto, CastsToTheDtypeOfTheParameter) {
  NamedTensors tensors = whole();
  for (auto& [name, tensor] : tensors) tensor = tensor.to(torch::kBFloat16);
  load_into(module_, source(tensors), KeyFamily::kUNet);
  EXPECT_EQ(module_.parameters().front().scalar_type(), torch::kFloat32);
}

TEST_F(LoadInto, TakesConvolutionsOfOneCellForProjections) {
  NamedTensors tensors = whole();
  tensors[0].second = torch::arange(6.0F).reshape({2, 3, 1, 1});
  load_into(module_, source(tensors), KeyFamily::kUNet);
  EXPECT_TRUE(torch::equal(module_.named_parameters()["first.weight"], torch::arange(6.0F).reshape({2, 3})));
}

TEST_F(LoadInto, NamesTheFileCountsAndFirstNamesOfWhatDoesNotFit) {
  NamedTensors tensors = whole();
  tensors.erase(tensors.begin() + 1);
  EXPECT_THAT(refusal(tensors), AllOf(HasSubstr("w.safetensors"), HasSubstr("1 tensors missing (first.bias)")));
  tensors = whole();
  tensors.emplace_back("third.weight", torch::ones(1));
  EXPECT_THAT(refusal(tensors), HasSubstr("1 unexpected (third.weight)"));
  tensors = whole();
  tensors[0].second = torch::ones({3, 2});
  EXPECT_THAT(refusal(tensors), HasSubstr("1 of a wrong shape (first.weight: [3, 2] instead of [2, 3])"));
  EXPECT_THAT(refusal({}), AllOf(HasSubstr("4 tensors missing ("), HasSubstr(", ...)")));
}

TEST_F(LoadInto, RefusesIntegersAsWeightsByNameAndDtype) {
  for (const auto& [dtype, name] :
       {std::pair{torch::kInt64, "I64"}, std::pair{torch::kUInt8, "U8"}, std::pair{torch::kBool, "BOOL"}}) {
    NamedTensors tensors = whole();
    tensors[0].second = tensors[0].second.to(dtype);
    EXPECT_THAT(refusal(tensors), AllOf(HasSubstr(std::string("first.weight: ") + name), HasSubstr("F32"))) << name;
    EXPECT_FALSE(compare_keys(module_, source(tensors), KeyFamily::kUNet).complete());
  }
}

TEST_F(LoadInto, PassesTheIntegerBufferOfOldTextEncoders) {
  NamedTensors tensors = whole();
  for (auto& [name, tensor] : tensors) name.insert(0, "text_model.");
  class TextModel : public torch::nn::Module {
   public:
    TextModel() { register_module("text_model", std::make_shared<TwoLayers>()); }
  } module;
  tensors.emplace_back("text_model.embeddings.position_ids", torch::arange(77));
  EXPECT_TRUE(load_into(module, source(tensors), KeyFamily::kTextEncoder).complete());
}

TEST_F(LoadInto, RefusesTwoSpellingsOfOneParameter) {
  NamedTensors tensors = whole();
  tensors.emplace_back("module.first.bias", torch::ones(2));
  EXPECT_THAT(refusal(tensors), HasSubstr("unexpected"));
}

TEST_F(LoadInto, ComparesWithoutCopying) {
  const auto before = module_.parameters().front().clone();
  EXPECT_TRUE(compare_keys(module_, source(whole()), KeyFamily::kUNet).complete());
  EXPECT_TRUE(torch::equal(before, module_.parameters().front()));
}

}  // namespace
}  // namespace sdtune::model
