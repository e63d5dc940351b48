#include "model/generate/prompt_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> read_prompts(const std::string& file) {
  std::vector<std::string> texts;
  for (const PromptLine& line : read_prompt_lines(file, "--prompts")) texts.push_back(line.text);
  return texts;
}

std::string refusal(const std::string& file) {
  try {
    read_prompts(file);
  } catch (const Error& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(PromptList, ReadsYamlAndText) {
  const test::ScratchFolder scratch;
  const auto yaml = scratch.write("a.yaml", "# twenty\n- a photo of {trigger}\n- \"one: two\"\n");
  EXPECT_THAT(read_prompts(yaml), ElementsAre("a photo of {trigger}", "one: two"));
  const auto text = scratch.write("a.txt", "# comment\na cat, sitting\r\n\n - b \n");
  EXPECT_THAT(read_prompts(text), ElementsAre("a cat, sitting", " - b"));
  const auto marked = scratch.write("marked.txt", "\xEF\xBB\xBF# comment\na cat\n");  // a byte order mark
  EXPECT_THAT(read_prompts(marked), ElementsAre("a cat"));
  EXPECT_THAT(read_prompt_lines(text, "--prompts")[1].where, testing::EndsWith("a.txt:4"));
  EXPECT_THAT(read_prompt_lines(yaml, "--prompts")[0].where, testing::EndsWith("a.yaml:2"));
}

TEST(PromptList, NamesWhatIsWrong) {
  const test::ScratchFolder scratch;
  EXPECT_THAT(refusal("absent.yaml"), HasSubstr("--prompts: there is no such file (got absent.yaml)"));
  EXPECT_THAT(refusal(scratch.write("a.yaml", "prompt: a cat\n")), HasSubstr("is not a list of prompts"));
  EXPECT_THAT(refusal(scratch.write("b.yaml", "- a\n- {trigger}\n")), HasSubstr("b.yaml"));
  EXPECT_THAT(refusal(scratch.write("c.txt", "\n\n")), HasSubstr("has no prompt"));
  EXPECT_THAT(refusal(scratch.write("latin.txt", "# caf\xe9\na cat\na caf\xe9\n")),
              HasSubstr("latin.txt:3: is not UTF-8"));
}

TEST(PromptList, FindsTheListThatIsInstalled) {
  const std::vector<std::string> prompts = read_prompts("portraits");
  EXPECT_EQ(prompts.size(), 20u);
  EXPECT_EQ(std::set<std::string>(prompts.begin(), prompts.end()).size(), 20u);
  for (const std::string& prompt : prompts) EXPECT_THAT(prompt, HasSubstr(std::string(kTriggerMark)));
  EXPECT_EQ(read_prompts("configs/prompts/portraits.yaml"), prompts);
}

TEST(PromptList, PutsTheTriggerInPlace) {
  EXPECT_EQ(with_trigger("{trigger} and {trigger}", "sks person"), "sks person and sks person");
  EXPECT_EQ(with_trigger("a photo", "sks"), "a photo");
  EXPECT_EQ(with_trigger("{trigger}", "a {trigger}"), "a {trigger}");  // once, not for ever
}

}  // namespace
}  // namespace sdtune::model
