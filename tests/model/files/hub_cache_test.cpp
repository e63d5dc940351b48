#include "model/files/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include "model/base/error.h"
#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    environment_.set("HF_HUB_CACHE", (scratch_.path() / "hub").string());
    scratch_.write("hub/models--org--name/refs/main", "abc\n");
    scratch_.write("hub/models--org--name/blobs/1", "{}");
    scratch_.write("hub/models--org--name/snapshots/old/model_index.json", "{}");
    fs::create_directories(snapshot());
    fs::create_symlink("../../blobs/1", snapshot() / "model_index.json");
  }
  fs::path snapshot() const { return scratch_.path() / "hub/models--org--name/snapshots/abc"; }
  std::string refusal(const std::string& name) const {
    try {
      find_model_folder(name);
    } catch (const WeightError& error) {
      return error.what();
    }
    return "was found";
  }

  test::ScratchFolder scratch_;
  test::Environment environment_;
};

TEST_F(HubCache, FindsTheSnapshotThatRefsMainNames) {
  EXPECT_EQ(find_model_folder("org/name"), snapshot());
}

TEST_F(HubCache, TakesAnotherSnapshotWhenMainIsGone) {
  fs::remove_all(snapshot());
  EXPECT_EQ(find_model_folder("org/name").filename(), "old");
}

TEST_F(HubCache, FoldersWinOverIds) {
  EXPECT_EQ(find_model_folder(scratch_.path().string()), scratch_.path());
}

TEST_F(HubCache, PrintsTheCommandThatFetchesWhatIsAbsent) {
  EXPECT_THAT(refusal("org/absent"), HasSubstr("sdtune fetch org/absent"));
  EXPECT_THAT(refusal("no such folder"), HasSubstr("no such folder"));
  EXPECT_THAT(refusal("../../absent"), HasSubstr("no such folder"));
  EXPECT_THAT(refusal("/absent/folder"), HasSubstr("no such folder"));
  EXPECT_THAT(refusal(scratch_.write("file.ckpt", "x").string()), HasSubstr("is a file"));
}

TEST_F(HubCache, RefusesLinksThatLeaveTheCache) {
  fs::create_symlink("/etc/hostname", snapshot() / "config.json");
  EXPECT_THAT(refusal("org/name"), HasSubstr("leaves the Hugging Face cache"));
}

TEST_F(HubCache, RefusesLinksToNothingAndLoops) {
  fs::create_symlink("../../blobs/absent", snapshot() / "a");
  EXPECT_THAT(refusal("org/name"), HasSubstr("not there"));
  fs::remove(snapshot() / "a");
  fs::create_symlink("b", snapshot() / "b");
  EXPECT_THAT(refusal("org/name"), HasSubstr("not there"));
}

TEST_F(HubCache, IgnoresARefThatPointsElsewhere) {
  scratch_.write("hub/models--org--name/refs/main", "../../../../etc");
  EXPECT_EQ(find_model_folder("org/name").parent_path().filename(), "snapshots");
}

TEST_F(HubCache, KnowsTheBundledBaseByItsName) {
  test::Environment environment;
  environment.set("SDTUNE_SHARE", scratch_.path().string());
  EXPECT_THAT(refusal("portrait-64"), HasSubstr("portrait-64: the bundled base is not in this installation"));
  EXPECT_THAT(refusal("portrait-64"), HasSubstr("docs/weights.md"));
  scratch_.write("models/portrait-64/model_index.json", "{}");
  EXPECT_EQ(find_model_folder("portrait-64"), scratch_.path() / "models" / "portrait-64");
  EXPECT_THAT(refusal("portrait-128"), HasSubstr("portrait-128: the bundled base is not in this installation"));
  scratch_.write("models/portrait-128/model_index.json", "{}");
  EXPECT_EQ(find_model_folder("portrait-128"), scratch_.path() / "models" / "portrait-128");
}

TEST_F(HubCache, FollowsTheVariablesOfHuggingFace) {
  test::Environment environment;
  environment.set("HF_HUB_CACHE", "");
  environment.set("HF_HOME", "/home/hf");
  EXPECT_EQ(hub_cache_folder(), "/home/hf/hub");
  environment.set("HF_HOME", "");
  environment.set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache_folder(), "/x/huggingface/hub");
  environment.set("XDG_CACHE_HOME", "");
  environment.set("HOME", "/home/me");
  EXPECT_EQ(hub_cache_folder(), "/home/me/.cache/huggingface/hub");
  environment.set("HF_HOME", "/home/hf");
  environment.set("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(hub_cache_folder(), "/old");
}

// As a file of variables gives it, which no shell reads.
TEST_F(HubCache, PutsTheUsersFolderInPlaceOfATilde) {
  test::Environment environment;
  environment.set("HOME", "/home/me");
  environment.set("HF_HUB_CACHE", "~/models");
  EXPECT_EQ(hub_cache_folder(), "/home/me/models");
  environment.set("HF_HUB_CACHE", "~models");
  EXPECT_EQ(hub_cache_folder(), "~models");
  environment.set("HF_HUB_CACHE", "");
  environment.set("HF_HOME", "~");
  EXPECT_EQ(hub_cache_folder(), "/home/me/hub");
  environment.set("HF_HOME", "");
  environment.set("XDG_CACHE_HOME", "~/cache");
  EXPECT_EQ(hub_cache_folder(), "/home/me/cache/huggingface/hub");
}

// As cloud-init and systemd start a program: huggingface_hub then takes the user's folder, and not /.cache.
TEST_F(HubCache, IsTheUsersWithoutHome) {
  const passwd* user = ::getpwuid(::getuid());
  if (user == nullptr) GTEST_SKIP() << "a user that the system does not know";
  const std::string home = user->pw_dir;
  test::Environment environment;
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
    environment.unset(name);
  }
  EXPECT_EQ(hub_cache_folder(), home + "/.cache/huggingface/hub");
}

}  // namespace
}  // namespace sdtune
