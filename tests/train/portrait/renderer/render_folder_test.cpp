#include "train/portrait/renderer/render_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/base/error.h"

namespace sdtune::train::portrait {
namespace {

namespace fs = std::filesystem;

class RenderFolderFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("render_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  void render(bool overwrite, const std::string& name) const {
    RenderFolder target(real_file_system(), folder_, overwrite);
    target.add(name, "png", "a person", R"({"file":")" + name + R"(.png"})");
    target.finish();
  }

  fs::path folder_;
};

TEST_F(RenderFolderFiles, WritesImagesCaptionsAndLabels) {
  RenderFolder target(real_file_system(), folder_, false);
  target.add("a", "png", "a person", R"({"file":"a.png"})");
  target.add("b", "png", "", R"({"file":"b.png"})");
  EXPECT_FALSE(has("labels.jsonl"));  // not before all is written
  EXPECT_EQ(target.finish(), folder_ / "labels.jsonl");
  EXPECT_EQ(read_file(folder_ / "labels.jsonl"), "{\"file\":\"a.png\"}\n{\"file\":\"b.png\"}\n");
  EXPECT_EQ(read_file(folder_ / "a.txt"), "a person\n");
  EXPECT_TRUE(has("b.png"));
  EXPECT_FALSE(has("b.txt"));
}

TEST_F(RenderFolderFiles, RefusesAFolderThatHoldsAnything) {
  fs::create_directories(folder_);
  EXPECT_NO_THROW(render(false, "a"));
  EXPECT_THROW(render(false, "b"), ConfigError);
  EXPECT_TRUE(has("a.png"));
  EXPECT_FALSE(has("b.png"));
}

TEST_F(RenderFolderFiles, OverwritesWhatARenderListedAndNothingElse) {
  render(false, "a");
  write("mine.png", "mine");
  write("mine.txt", "mine");
  render(true, "b");
  EXPECT_FALSE(has("a.png") || has("a.txt"));
  EXPECT_TRUE(has("b.png") && has("mine.png") && has("mine.txt"));
  EXPECT_THROW(render(true, "mine"), ConfigError);
  EXPECT_EQ(read_file(folder_ / "mine.png"), "mine");
}

TEST_F(RenderFolderFiles, OverwritesAnInterruptedRender) {
  {
    RenderFolder target(real_file_system(), folder_, false);
    target.add("a", "png", "a person", R"({"file":"a.png"})");
  }
  std::ofstream(partial_name(folder_ / "labels.jsonl"), std::ios::app) << R"({"file":"b.p)";  // cut short
  EXPECT_FALSE(has("labels.jsonl"));
  render(true, "c");
  EXPECT_FALSE(has("a.png"));
  EXPECT_EQ(read_file(folder_ / "labels.jsonl"), "{\"file\":\"c.png\"}\n");
}

TEST_F(RenderFolderFiles, NeverLeavesItsFolder) {
  fs::create_directories(folder_ / "inner");
  write("outside.png", "mine");
  std::ofstream(folder_ / "inner" / "labels.jsonl") << R"({"file":"../outside.png"})"
                                                    << "\n";
  RenderFolder target(real_file_system(), folder_ / "inner", true);
  target.finish();
  EXPECT_TRUE(has("outside.png"));
}

}  // namespace
}  // namespace sdtune::train::portrait
