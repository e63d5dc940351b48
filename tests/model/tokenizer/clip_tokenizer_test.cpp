// The tokenizer on a vocabulary small enough to follow by hand; tests/python/test_tokenizer.py has the real one.
#include "model/tokenizer/clip_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ids: a 0, b 1, c 2, a</w> 3, b</w> 4, c</w> 5, ab 6, abc</w> 7, bc</w> 8, start 9, end 10.
constexpr const char* kVocabulary =
    R"({"a":0,"b":1,"c":2,"a</w>":3,"b</w>":4,"c</w>":5,"ab":6,"abc</w>":7,"bc</w>":8,"<|startoftext|>":9,"<|endoftext|>":10})";
constexpr const char* kMerges = "#version: 0.2\na b\nb c</w>\nab c</w>\n";

class ClipTokenizerFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("clip_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("vocab.json", kVocabulary);
    write("merges.txt", kMerges);
    write("tokenizer_config.json", R"({"model_max_length": 6})");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  ClipTokenizer load() const { return ClipTokenizer::from_folder(folder_); }
  std::string error() const {
    try {
      load();
    } catch (const WeightError& error) {
      return error.problems().front().line();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(ClipTokenizerFiles, MergesByRank) {
  const ClipTokenizer tokenizer = load();
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(7));          // a b first, though b c is there too
  EXPECT_THAT(tokenizer.encode("bc ab"), ElementsAre(8, 0, 4));  // no merge makes ab</w>
  EXPECT_THAT(tokenizer.encode("aabc"), ElementsAre(0, 7));
  EXPECT_THAT(tokenizer.encode(""), IsEmpty());
}

TEST_F(ClipTokenizerFiles, UnknownBytesAreTheUnknownToken) {
  EXPECT_THAT(load().encode("x\u00e9"), ElementsAre(10, 10, 10));
}

TEST_F(ClipTokenizerFiles, FramesPadsAndCounts) {
  const ClipTokenizer tokenizer = load();
  const Tokens brief = tokenizer("a b");
  EXPECT_THAT(brief.ids, ElementsAre(9, 3, 4, 10, 10, 10));
  EXPECT_EQ(brief.truncated, 0);
  const Tokens cut = tokenizer("a b c a b c");
  EXPECT_THAT(cut.ids, ElementsAre(9, 3, 4, 5, 3, 10));
  EXPECT_EQ(cut.truncated, 2);
}

TEST_F(ClipTokenizerFiles, SpecialTokensInTheTextAreOneId) {
  EXPECT_THAT(load().encode("a<|endoftext|>b"), ElementsAre(3, 10, 4));
}

TEST_F(ClipTokenizerFiles, PadTokenOfTheVocabularyIsFoundInTheText) {
  write("tokenizer_config.json", R"({"model_max_length": 6, "pad_token": "c"})");
  const ClipTokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.pad_token_id(), 2);
  EXPECT_THAT(tokenizer("abc").ids, ElementsAre(9, 0, 4, 2, 10, 2));
}

TEST_F(ClipTokenizerFiles, AddedWordsExtendTheVocabulary) {
  write("added_tokens.json", R"({"<cab>": 11})");
  const ClipTokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.vocab_size(), 12);
  EXPECT_THAT(tokenizer.encode("a <CAB>b"), ElementsAre(3, 11, 4));
  write("added_tokens.json", R"({"<cab>": 15})");
  EXPECT_THAT(error(), HasSubstr("do not belong together"));
}

TEST_F(ClipTokenizerFiles, ReadsASingleFileFirst) {
  write("tokenizer.json", std::string(R"({"model": {"type": "BPE", "end_of_word_suffix": "</w>", "vocab": )") +
                              kVocabulary + R"(, "merges": ["a b", ["ab", "c</w>"]]}, "added_tokens": []})");
  write("vocab.json", "not read");
  EXPECT_THAT(load().encode("abc bc"), ElementsAre(7, 1, 5));
}

TEST_F(ClipTokenizerFiles, NamesWhatIsWrongInASingleFile) {
  const auto error_of = [&](const std::string& vocabulary, const std::string& rest) {
    write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": )" + vocabulary + rest + "}}");
    return error();
  };
  EXPECT_EQ(error_of(kVocabulary, R"(, "merges": [])"), "");
  EXPECT_THAT(error_of(R"({"a": 0, "b": {"c": 1}})", R"(, "merges": [])"),
              HasSubstr("token 'b' has a wrong id (got {}"));
  EXPECT_THAT(error_of("[0]", R"(, "merges": [])"), HasSubstr("has no object of tokens and ids"));
  EXPECT_THAT(error_of(kVocabulary, ""), HasSubstr("model lacks vocab or merges"));
  EXPECT_THAT(error_of(kVocabulary, R"(, "merges": [["a"]])"), HasSubstr("allowed: two tokens"));
}

// Each level would take its part of the stack where it is written out or copied.
TEST_F(ClipTokenizerFiles, RefusesAFileOfAMillionLevels) {
  constexpr std::size_t kLevels = 1'000'000;
  const std::string lists = std::string(kLevels, '[') + std::string(kLevels, ']');
  const std::string model = std::string(R"({"model": {"type": "BPE", "vocab": )") + kVocabulary;
  for (const std::string& rest :
       {R"(, "merges": []}, "added_tokens": )" + lists + "}", R"(, "merges": [)" + lists + "]}}"}) {
    write("tokenizer.json", model + rest);
    EXPECT_THAT(error(), HasSubstr("is nested too deep"));
  }
  fs::remove(folder_ / "tokenizer.json");
  write("vocab.json", "{\"a\": " + lists + "}");
  EXPECT_THAT(error(), HasSubstr("is nested too deep"));
}

TEST_F(ClipTokenizerFiles, NamesWhatIsWrong) {
  write("merges.txt", "#version: 0.2\na b\nb zz\n");
  EXPECT_THAT(error(), HasSubstr("merge 2"));
  write("merges.txt", "#version: 0.2\na b c\n");
  EXPECT_THAT(error(), HasSubstr("merges.txt:2"));
  write("merges.txt", kMerges);
  write("vocab.json", R"({"a": 0, "b": 0})");
  EXPECT_THAT(error(), HasSubstr("wrong id"));
  for (const char* id : {"1.5", "-1", "2", "4294967297", "\"1\"", "null", "true", "[1]", R"({"c": 1})"}) {
    write("vocab.json", std::string(R"({"a": 0, "b": )") + id + "}");
    EXPECT_THAT(error(), HasSubstr("token 'b' has a wrong id")) << id;
  }
  for (const char* text : {"[]", "{}", "7", R"([{"a": 0}])"}) {
    write("vocab.json", text);
    EXPECT_THAT(error(), HasSubstr("has no object of tokens and ids")) << text;
  }
  for (const char* text : {"", R"({"a": 0)", R"({"a": 0} x)", "{\"\xff\": 0}"}) {
    write("vocab.json", text);
    EXPECT_THAT(error(), HasSubstr("is not valid JSON")) << text;
  }
  fs::remove(folder_ / "vocab.json");
  EXPECT_THAT(error(), HasSubstr("is missing"));
}

TEST_F(ClipTokenizerFiles, LengthMustHoldTheFrame) {
  write("tokenizer_config.json", R"({"model_max_length": 2})");
  EXPECT_THAT(error(), HasSubstr("model_max_length"));
}

TEST_F(ClipTokenizerFiles, SavedFolderIsTheSameTokenizer) {
  write("added_tokens.json", R"({"<cab>": 11})");
  const ClipTokenizer tokenizer = load();
  const fs::path copy = folder_ / "copy";
  tokenizer.save(real_file_system(), copy);
  const ClipTokenizer again = ClipTokenizer::from_folder(copy);
  for (const char* text : {"abc <cab> b<|endoftext|>", "", "cba"}) {
    EXPECT_EQ(again(text).ids, tokenizer(text).ids);
  }
}

}  // namespace
}  // namespace sdtune
