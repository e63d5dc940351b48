#include "app/commands/lora_tags.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace sdtune::app {
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

TEST(LoraTags, FindFilesAndSayWhichAreNowhere) {
  const test::ScratchFolder scratch;
  scratch.write("loras/me.safetensors", "x");
  SampleOptions options;
  options.lora_dir = (scratch.path() / "loras").string();
  options.lora = {(scratch.path() / "loras" / "me.safetensors").string() + ":0.5"};
  options.prompt = "a <lora:me> b";
  std::vector<Problem> problems;
  resolve_loras(options, "--prompt", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(options.prompt, "a b");
  const std::string file = (scratch.path() / "loras" / "me.safetensors").string();
  EXPECT_EQ(options.lora, (std::vector<std::string>{file + ":0.5", file + ":1"}));
  EXPECT_EQ(lora_tags_text(options.lora), "<lora:me:0.5> <lora:me:1>");

  SampleOptions wrong = options;
  wrong.lora.clear();
  wrong.prompt = "a <lora:you> b";
  resolve_loras(wrong, "--prompt", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().line().find("<lora:you>"), std::string::npos) << problems.front().line();

  wrong.prompt = "a <lora:me:0.5:1> b";
  resolve_loras(wrong, "--prompt", problems);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_NE(problems.back().line().find("two weights"), std::string::npos) << problems.back().line();

  SampleOptions plain;
  plain.prompt_syntax = "plain";
  plain.prompt = "a <lora:you> b";
  problems.clear();
  resolve_loras(plain, "--prompt", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(plain.prompt, "a <lora:you> b");
}

}  // namespace
}  // namespace sdtune::app
