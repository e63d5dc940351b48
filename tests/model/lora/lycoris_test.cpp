#include "model/lora/lycoris.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

using testing::HasSubstr;

std::string refusal_of_factors(const LycorisFactors& factors) {
  try {
    lycoris_delta(factors, std::nullopt, {4, 6}, "me.safetensors: layer");
  } catch (const WeightError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(LycorisDelta, OfTwoProductsIsTheirProductNumberByNumber) {
  const LycorisFactors factors = {{"hada_w1_a", torch::full({4, 1}, 2.0)},
                                  {"hada_w1_b", torch::ones({1, 6})},
                                  {"hada_w2_a", torch::full({4, 1}, 3.0)},
                                  {"hada_w2_b", torch::ones({1, 6})}};
  const torch::Tensor delta = lycoris_delta(factors, std::nullopt, {4, 6}, "me.safetensors: layer");
  EXPECT_TRUE(delta.equal(torch::full({4, 6}, 6.0)));
}

// A file of a few bytes: 4e8 numbers each.
TEST(LycorisDelta, RefusesProductsThatWouldFillTheMemory) {
  constexpr std::int64_t kRows = 20'000;
  const torch::Tensor column = torch::ones({kRows, 1}), row = torch::ones({1, kRows});
  const std::string said = "me.safetensors: layer: has factors whose product is larger than any layer";
  const LycorisFactors without_columns = {{"hada_w1_a", torch::ones({kRows, 0})},
                                          {"hada_w1_b", torch::ones({0, kRows})},
                                          {"hada_w2_a", torch::ones({4, 1})},
                                          {"hada_w2_b", torch::ones({1, 6})}};
  EXPECT_THAT(refusal_of_factors(without_columns), HasSubstr(said));
  EXPECT_THAT(refusal_of_factors({{"lokr_w1", column}, {"lokr_w2", row}}), HasSubstr(said));
  EXPECT_THAT(refusal_of_factors({{"lokr_w1", column}, {"lokr_w2_a", column}, {"lokr_w2_b", row}}), HasSubstr(said));
  // On the way to a result that is small.
  const torch::Tensor core = torch::ones({1, kRows, 1, 1});
  EXPECT_THAT(refusal_of_factors({{"lora_mid", core}, {"lora_up", column}, {"lora_down", column}}), HasSubstr(said));
  EXPECT_THAT(refusal_of_factors({{"lokr_w1", column}, {"lokr_w2", column}}), HasSubstr(said));
}

TEST(LycorisDelta, RefusesFactorsOfAnotherLayer) {
  EXPECT_THAT(refusal_of_factors({{"lokr_w1", torch::ones({5, 1})}, {"lokr_w2", torch::ones({1, 6})}}),
              HasSubstr("has tensors that do not fit its layer"));
  const LycorisFactors column_and_row = {{"hada_w1_a", torch::ones({4, 1})},
                                         {"hada_w1_b", torch::ones({1, 1})},
                                         {"hada_w2_a", torch::ones({1, 1})},
                                         {"hada_w2_b", torch::ones({1, 6})}};
  EXPECT_THAT(refusal_of_factors(column_and_row), HasSubstr("has tensors that do not fit its layer"));
}

}  // namespace
}  // namespace sdtune::model
