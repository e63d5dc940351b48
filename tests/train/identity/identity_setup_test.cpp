#include "train/identity/identity_setup.h"

#include <gtest/gtest.h>

#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::train {
namespace {

// The digest of a run whose fingerprint says nothing, so that only what the digest adds to it counts.
class IdentityDigest : public testing::Test {
 protected:
  std::string digest_of(const std::string& instance_prompt, const std::vector<std::string>& captions) {
    config_.data.instance_prompt = instance_prompt;
    photos_.clear();
    for (const std::string& caption : captions) photos_.emplace_back().caption = caption;
    return identity_eval_digest({.config = config_,
                                 .folder = folder_,
                                 .photos = photos_,
                                 .inputs = {},
                                 .fingerprint = {},
                                 .bundle = bundle_,
                                 .parameters = parameters_,
                                 .group = group_,
                                 .device = torch::kCPU,
                                 .dtype = torch::kFloat32,
                                 .total_steps = 10,
                                 .portrait_readers = readers_,
                                 .stop = stop_});
  }

  TrainConfig config_;

 private:
  test::ScratchFolder scratch_;
  model::ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
  RunFolder folder_{scratch_.path()};
  std::vector<Photo> photos_;
  std::vector<TrainedParameter> parameters_;
  SingleProcess group_;
  test::NoPortraitReaders readers_;
  StopFlag stop_;
};

TEST_F(IdentityDigest, HasTheWordsThatEveryCaptionLeavesOpen) {
  const std::vector<std::string> captions = {"ohwx man and sks person at home", "sks person and ohwx man"};
  const std::string sks = digest_of("a photo of sks person", captions);
  EXPECT_EQ(digest_of("a photo of sks person", captions), sks);
  EXPECT_NE(digest_of("a photo of ohwx man", captions), sks);
  config_.data.trigger_word = "ohwx man";
  EXPECT_NE(digest_of("a photo of sks person", captions), sks);
}

TEST_F(IdentityDigest, HasTheWordsAndTheClassOfEachOfSeveralSubjects) {
  const auto digest = [&](const std::string& words, const std::string& class_prompt) {
    config_.data.concepts = {R"({"images": "a", "instance_prompt": "a photo of )" + words + R"(", "class_prompt": ")" +
                             class_prompt + R"("})"};
    return digest_of("a photo of sks person", {"sks person and ohwx man"});
  };
  const std::string first = digest("sks person", "a photo of a person");
  EXPECT_EQ(digest("sks person", "a photo of a person"), first);
  EXPECT_NE(digest("ohwx man", "a photo of a person"), first);
  EXPECT_NE(digest("sks person", "a portrait of a person"), first);
}

// What the fingerprint says already is left out, so that a run of a former version keeps its curve.
TEST_F(IdentityDigest, LeavesOutWordsThatTheCaptionsSay) {
  const std::string sks = "a photo of sks person", ohwx = "a photo of ohwx man";
  EXPECT_EQ(digest_of(ohwx, {ohwx, ohwx}), digest_of(sks, {sks, sks}));
  EXPECT_NE(digest_of(sks, {sks, ohwx}), digest_of(sks, {sks, sks})) << "a caption of its own";
}

}  // namespace
}  // namespace sdtune::train
