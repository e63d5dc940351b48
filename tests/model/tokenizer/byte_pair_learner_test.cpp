// Learning by hand-made texts; tests/python/test_tokenizer_learning.py has captions and transformers.
#include "model/tokenizer/byte_pair_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> repeated(const std::string& text, int count) {
  return std::vector<std::string>(static_cast<std::size_t>(count), text);
}

// The dictionary of Sennrich et al., section 3.2: low 5, lower 2, newest 6, widest 3.
std::vector<std::string> sennrich_texts() {
  std::vector<std::string> texts;
  for (const auto& [word, count] : {std::pair{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}) {
    const std::vector<std::string> copies = repeated(word, count);
    texts.insert(texts.end(), copies.begin(), copies.end());
  }
  return texts;
}

std::string saved(const ClipTokenizer& tokenizer, const std::string& file) {
  const fs::path folder = fs::path(testing::TempDir()) / "byte_pair_learner";
  fs::remove_all(folder);
  tokenizer.save(real_file_system(), folder);
  std::string text = read_file(folder / file);
  fs::remove_all(folder);
  return text;
}

TEST(BytePairLearner, MergesTheMostFrequentPairFirst) {
  // es, est</w> occur 9 times ("s t</w>" comes after "e s" in the order of texts), lo, low 7, then ne, ew, new... 6.
  EXPECT_EQ(saved(learn_tokenizer(sennrich_texts(), 518, 77), "merges.txt"),
            "#version: 0.2\ne s\nes t</w>\nl o\ne w\n");
}

TEST(BytePairLearner, StopsWhenEveryPairIsRare) {
  const ClipTokenizer tokenizer = learn_tokenizer({"ab ab cd"}, 2000);
  EXPECT_EQ(tokenizer.vocab_size(), 515);
  EXPECT_EQ(tokenizer.encode("ab").size(), 1u);
  EXPECT_EQ(tokenizer.encode("cd").size(), 2u);
}

TEST(BytePairLearner, NumbersIdsAsClipDoes) {
  const ClipTokenizer tokenizer = learn_tokenizer({"ab ab"}, 515);
  EXPECT_THAT(tokenizer.encode("!"), testing::ElementsAre(256));  // "!</w>"; "!" alone is 0
  EXPECT_THAT(tokenizer.encode("!!"), testing::ElementsAre(0, 256));
  EXPECT_THAT(tokenizer.encode("AB"), testing::ElementsAre(512));
  EXPECT_EQ(tokenizer.bos_token_id(), 513);
  EXPECT_EQ(tokenizer.eos_token_id(), 514);
  EXPECT_EQ(tokenizer.pad_token_id(), 514);
}

TEST(BytePairLearner, DependsOnWordsAndNotOnTheOrderOfTexts) {
  std::vector<std::string> texts = sennrich_texts();
  const std::string expected = saved(learn_tokenizer(texts, 524), "merges.txt");
  std::reverse(texts.begin(), texts.end());
  EXPECT_EQ(saved(learn_tokenizer(texts, 524), "merges.txt"), expected);
  texts.pop_back();  // one "low" less
  EXPECT_NE(saved(learn_tokenizer(texts, 524), "merges.txt"), expected);
}

TEST(BytePairLearner, SkipsSpecialTokensAndKeepsThem) {
  const ClipTokenizer tokenizer = learn_tokenizer(repeated("<|endoftext|>ab", 3), 600);
  EXPECT_EQ(tokenizer.encode("<|endoftext|>").front(), tokenizer.eos_token_id());
  EXPECT_GT(tokenizer.encode("endoftext").size(), 8u);  // its letters were not counted
}

TEST(BytePairLearner, KeepsOneIdForATokenThatTwoPairsMake) {
  // "abc" arises as ab + c and as a + bc, in words where the other pair went first.
  const ClipTokenizer tokenizer =
      learn_tokenizer({"abcx abcx abcx bcy bcy bcy bcy bcy ab ab ab ab abz abz abz abz abz abz"}, 700);
  const fs::path folder = fs::path(testing::TempDir()) / "byte_pair_round_trip";
  tokenizer.save(real_file_system(), folder);
  const ClipTokenizer loaded = ClipTokenizer::from_folder(folder);
  EXPECT_EQ(loaded.vocab_size(), tokenizer.vocab_size());
  for (const char* text : {"abcx bcy ab abz", "abc bcx <|startoftext|> \xC3\xA9!", "sks person"}) {
    EXPECT_EQ(loaded.encode(text), tokenizer.encode(text)) << text;
    EXPECT_EQ(loaded(text).ids, tokenizer(text).ids) << text;
  }
  fs::remove_all(folder);
}

TEST(BytePairLearner, NamesWhatItCannotLearn) {
  EXPECT_THROW(learn_tokenizer({"a"}, 513), ConfigError);
  EXPECT_THROW(learn_tokenizer({"a"}, 514, 2), ConfigError);
  EXPECT_THROW(learn_tokenizer({"a\xFF"}, 514), DataError);
  EXPECT_EQ(learn_tokenizer({}, 514).vocab_size(), 514);
}

}  // namespace
}  // namespace sdtune
