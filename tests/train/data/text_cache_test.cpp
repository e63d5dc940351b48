#include "train/data/text_cache.h"

#include <gtest/gtest.h>

#include <ATen/Functions.h>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

// Stands for the tokenizer: the text's length, repeated.
model::PromptIds fake_tokenize(const std::vector<std::string>& prompts) {
  std::vector<torch::Tensor> rows;
  for (const std::string& prompt : prompts) {
    rows.push_back(torch::full({77}, static_cast<std::int64_t>(prompt.size()), torch::kInt64));
  }
  return {torch::stack(rows), torch::Tensor()};
}

TEST(TextCache, EncodesEachCaptionOnceAndInParts) {
  std::vector<std::string> captions;
  for (std::size_t i = 1; i <= 20; ++i) captions.insert(captions.end(), 3, std::string(i, 'x'));
  std::int64_t encoded = 0;
  const TextCache cache(captions, fake_tokenize, [&](const model::PromptIds& ids) -> model::PromptEmbeds {
    EXPECT_LE(ids.ids.size(0), 8);
    encoded += ids.ids.size(0);
    return {ids.ids.to(torch::kFloat32).unsqueeze(2).mul(0.5), ids.ids.select(1, 0).to(torch::kFloat32)};
  });
  EXPECT_EQ(encoded, 20);
  EXPECT_EQ(cache.size(), 20);
  const model::PromptEmbeds states = cache.states({"xxxx", "x", "xxxx"});
  EXPECT_EQ(states.context.sizes(), (std::vector<std::int64_t>{3, 77, 1}));
  EXPECT_EQ(states.context[0][5][0].item<float>(), 2.0f);
  EXPECT_EQ(states.context[1][5][0].item<float>(), 0.5f);
  EXPECT_EQ(states.pooled[2].item<float>(), 4.0f);
  EXPECT_EQ(cache.ids({"xx"}).ids[0][0].item<std::int64_t>(), 2);
  EXPECT_FALSE(cache.ids({"xx"}).ids_2.defined());
}

TEST(TextCache, WithoutAFrozenEncoderThereAreNoStates) {
  const TextCache cache({"a"}, fake_tokenize);
  EXPECT_FALSE(cache.has_states());
  EXPECT_THROW(cache.states({"a"}), std::logic_error);
  EXPECT_THROW(cache.ids({"b"}), DataError);
  EXPECT_THROW(TextCache({}, fake_tokenize), DataError);
}

}  // namespace
}  // namespace sdtune::train
