#include "train/data/trigger.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(Trigger, IsWhatTheClassPromptDoesNotSay) {
  const char* person = "a photo of a person";
  EXPECT_EQ(trigger_of("a photo of sks person", person), "sks person");
  EXPECT_EQ(trigger_of("A photo of SKS person, at home.", person), "sks person");
  EXPECT_EQ(trigger_of("sks person", person), "sks person");
  EXPECT_EQ(trigger_of("a photo of sks dog", person), "sks dog");
  EXPECT_EQ(trigger_of("portrait of zwx", person), "portrait of zwx");
  EXPECT_EQ(trigger_of("a photo of anna-lena person", person), "anna-lena person");
  EXPECT_EQ(trigger_of("a photo of \xC3\xA9lo\xC3\xAFse person", person), "\xC3\xA9lo\xC3\xAFse person");
  EXPECT_EQ(trigger_of("a photo of sks", ""), "a photo of sks");
}

TEST(Trigger, IsNothingWhereThePromptsAreTheSame) {
  EXPECT_EQ(trigger_of("a photo of a person", "a photo of a person"), "");
  EXPECT_EQ(trigger_of("a person", "a photo of a person"), "");
  EXPECT_EQ(trigger_of("", "a photo of a person"), "");
}

TEST(Trigger, IsFoundWordByWord) {
  EXPECT_TRUE(says_trigger("a photo of sks person on a beach", "sks person"));
  EXPECT_TRUE(says_trigger("SKS  Person, smiling", "sks person"));
  EXPECT_TRUE(says_trigger("anything", ""));
  EXPECT_FALSE(says_trigger("a photo of a person", "sks person"));
  EXPECT_FALSE(says_trigger("a photo of sks, the person", "sks person"));
  EXPECT_FALSE(says_trigger("sksperson", "sks person"));
  EXPECT_FALSE(says_trigger("", "sks person"));
}

}  // namespace
}  // namespace sdtune::train
