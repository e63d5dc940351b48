#include "train/run/run_folder.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"
#include "train/run/run_identity.h"
#include "train/run/run_lock.h"

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

TEST(RunFolder, KnowsWhetherARunIsInIt) {
  const test::ScratchFolder scratch;
  const RunFolder folder{scratch.path()};
  scratch.write("notes.txt", "mine");
  EXPECT_FALSE(folder.has_run());
  scratch.write("run.json", "{}");
  EXPECT_TRUE(folder.has_run());
}

TEST(RunLock, IsHeldByOneAndFreeAfterwards) {
  const test::ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "run.lock";
  {
    const RunLock lock(file);
    try {
      const RunLock second(file);
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_NE(error.problems().front().line().find("process "), std::string::npos);
    }
  }
  const RunLock again(file);
}

TEST(RunIdentity, HoldsWhatChangesNumbersOnly) {
  TrainConfig config = config_for("me");
  const auto before = identity_settings(config);
  config.run.gradient_checkpointing = true;
  config.checkpoint.checkpointing_steps = 7;
  config.run.max_train_steps = 50;
  EXPECT_EQ(identity_settings(config), before);
  config.optim.learning_rate = 1e-3;
  EXPECT_NE(identity_settings(config), before);
}

TEST(RunIdentity, HoldsTheLengthOfACurveThatDependsOnIt) {
  TrainConfig config = config_for("me");
  config.optim.lr_scheduler = "cosine";
  config.run.max_train_steps = 50;
  const auto before = identity_settings(config);
  config.run.max_train_steps = 60;
  EXPECT_NE(identity_settings(config), before);
}

TEST(RunIdentity, TakesOptionsThatTheCheckpointDoesNotKnowAsLeftAlone) {
  RunIdentity saved, now;
  now.settings = saved.settings = identity_settings(TrainConfig());
  saved.settings.erase("loss_type");
  EXPECT_FALSE(identity_changes(saved, now).empty());
  EXPECT_TRUE(identity_changes(completed_identity(saved), now).empty());
  TrainConfig changed;
  changed.objective.loss_type = "huber";
  now.settings = identity_settings(changed);
  EXPECT_EQ(identity_changes(completed_identity(saved), now).size(), 1U);
}

TEST(RunIdentity, FollowsThePhotosAndTheirCaptions) {
  Photo photo;
  photo.path = "a/00.jpg";
  photo.sha256 = "hash";
  photo.caption = "a photo";
  Photo other = photo;
  other.caption = "another";
  EXPECT_NE(identity_images({photo}, {}), identity_images({other}, {}));
  Photo moved = photo;
  moved.path = "b/00.jpg";
  EXPECT_EQ(identity_images({photo}, {}), identity_images({moved}, {}));
}

TEST(RunIdentity, HashesTheBaseByContent) {
  const test::ScratchFolder first;
  const test::ScratchFolder second;
  for (const test::ScratchFolder* folder : {&first, &second}) folder->write("unet/config.json", "{}");
  EXPECT_EQ(hash_of_base(first.path()), hash_of_base(second.path()));
  second.write("unet/config.json", "{ }");
  EXPECT_NE(hash_of_base(first.path()), hash_of_base(second.path()));
}

}  // namespace
}  // namespace sdtune::train
