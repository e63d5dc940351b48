#include "model/generate/lora_tags.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

TEST(LoraTags, LeaveThePromptAsItWouldBeWithout) {
  const std::pair<const char*, const char*> cases[] = {{"a <lora:x:0.5> photo", "a photo"},
                                                       {"<lora:x> a photo", "a photo"},
                                                       {"a photo <lora:x>", "a photo"},
                                                       {"a photo<lora:x>", "a photo"},
                                                       {"a<lora:x><lora:y:2> b", "a b"},
                                                       {"a, <lora:x>, b", "a, , b"},
                                                       {"a photo", "a photo"},
                                                       {"a <lora:x photo", "a <lora:x photo"}};
  for (const auto& [written, wanted] : cases) {
    std::string prompt = written;
    take_lora_tags(prompt);
    EXPECT_EQ(prompt, wanted) << written;
  }
}

TEST(LoraTags, SayNameAndWeight) {
  std::string prompt = "a <lora:me:0.8> b <lora:../you:-1> c <lora:third>";
  const std::vector<LoraTag> tags = take_lora_tags(prompt);
  ASSERT_EQ(tags.size(), 3U);
  EXPECT_EQ(tags[0].name, "me");
  EXPECT_EQ(tags[0].weight, "0.8");
  EXPECT_EQ(tags[1].name, "../you");
  EXPECT_EQ(tags[1].weight, "-1");
  EXPECT_EQ(tags[2].weight, "1");
}

TEST(LoraTags, OfOtherKindsAreTakenOutToo) {
  std::string prompt = "a <lyco:you:0.5> b <hypernet:them:1> c <lora:me>";
  const std::vector<LoraTag> tags = take_lora_tags(prompt);
  EXPECT_EQ(prompt, "a b c");
  ASSERT_EQ(tags.size(), 3U);
  EXPECT_EQ(tags[0].name, "you");
  EXPECT_EQ(tags[0].weight, "0.5");
  EXPECT_FALSE(tags[0].is_hypernetwork);
  EXPECT_TRUE(tags[1].is_hypernetwork);
  EXPECT_EQ(tags[1].text, "<hypernet:them:1>");
  EXPECT_FALSE(tags[2].is_hypernetwork);
}

TEST(LoraTags, OfLycoFindALoraAndHypernetworksAreRefused) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("me.safetensors", "x").string();
  GenerateOptions options;
  options.prompt = "a <lyco:me:0.5> b <hypernet:me:1>";
  std::vector<Problem> problems;
  resolve_lora_tags(options, scratch.path().string(), "--prompt", problems);
  EXPECT_EQ(options.prompt, "a b");
  EXPECT_EQ(options.loras, (std::vector<WeightedLora>{{file, 0.5}}));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().line().find("hypernetwork, which sdtune cannot apply (got <hypernet:me:1>)"),
            std::string::npos)
      << problems.front().line();
}

TEST(LoraTags, FindFilesAndSayWhichDoNotExist) {
  const test::ScratchFolder scratch;
  scratch.write("loras/me.safetensors", "x");
  const std::string folder = (scratch.path() / "loras").string(), file = folder + "/me.safetensors";
  GenerateOptions options;
  std::vector<Problem> problems;
  options.loras = parse_lora_list({file + ":0.123456789"}, "--lora", problems);
  options.prompt = "a <lora:me> b";
  resolve_lora_tags(options, folder, "--prompt", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(options.prompt, "a b");
  EXPECT_EQ(options.loras, (std::vector<WeightedLora>{{file, 0.123456789}, {file, 1}}));
  EXPECT_EQ(lora_text(options.loras.front()), file + ":0.123456789");
  EXPECT_EQ(lora_tags_text(options.loras), "<lora:me:0.123456789> <lora:me:1>");

  GenerateOptions wrong;
  wrong.prompt = "a <lora:you> b";
  resolve_lora_tags(wrong, folder, "--prompt", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().line().find("<lora:you>"), std::string::npos) << problems.front().line();

  wrong.prompt = "a <lora:me:0.5:1> b";
  resolve_lora_tags(wrong, folder, "--prompt", problems);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_NE(problems.back().line().find("two weights"), std::string::npos) << problems.back().line();

  GenerateOptions plain;
  plain.prompt_syntax = "plain";
  plain.prompt = "a <lora:you> b";
  problems.clear();
  resolve_lora_tags(plain, folder, "--prompt", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(plain.prompt, "a <lora:you> b");
}

}  // namespace
}  // namespace sdtune::model
