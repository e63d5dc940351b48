#include "train/config/run_folder.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

TrainConfig config_for(const std::string& images, const std::string& output = "") {
  TrainConfig config;
  config.data.images = images;
  config.run.output = output;
  return config;
}

TEST(RunFolder, IsNamedAfterThePhotos) {
  for (const char* images : {"me", "./me", "/photos/me/", "photos/../me"}) {
    EXPECT_EQ(run_folder(config_for(images)).root, "runs/me") << images;
  }
  EXPECT_EQ(run_folder(config_for(".")).root, "runs/run");
  EXPECT_EQ(run_folder(config_for("me", "out")).root, "out");
}

TEST(RunFolder, HasANameHoweverItIsWritten) {
  for (const char* root : {"runs/me", "runs/me/", "./runs/./me/", "runs/tom/../me"}) {
    EXPECT_EQ(RunFolder{root}.name(), "me") << root;
  }
  EXPECT_EQ(RunFolder{"."}.name(), std::filesystem::current_path().filename());
}

TEST(RunFolder, KnowsWhetherARunIsInIt) {
  const test::ScratchFolder scratch;
  const RunFolder folder{scratch.path()};
  scratch.write("notes.txt", "mine");
  EXPECT_FALSE(folder.has_run());
  scratch.write("run.json", "{}");
  EXPECT_TRUE(folder.has_run());
}

}  // namespace
}  // namespace sdtune::train
