#include "model/single_file/published_configs.h"

#include <gtest/gtest.h>

#include "model/schedule/scheduler.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

// A vocabulary of two words, in which "!" is the padding.
std::filesystem::path write_vocabulary(const test::ScratchFolder& scratch) {
  scratch.write("clip/vocab.json", R"({"!":0,"!</w>":1,"a":2,"a</w>":3,"<|startoftext|>":4,"<|endoftext|>":5})");
  scratch.write("clip/merges.txt", "#version: 0.2\n");
  scratch.write("clip/tokenizer_config.json", R"({"tokenizer_class":"CLIPTokenizer","pad_token":"!"})");
  return scratch.path() / "clip";
}

TEST(PublishedConfigs, PadAsTheFamilyDoes) {
  const test::ScratchFolder scratch;
  const std::filesystem::path clip = write_vocabulary(scratch);
  const BundleConfigs sd1 = published_configs(ModelFamily::kSd1, "epsilon", clip);
  EXPECT_EQ(sd1.tokenizer.pad_token_id(), 5);
  EXPECT_EQ(sd1.tokenizer.encode("a!"), (std::vector<std::int64_t>{3, 1}));  // a word again, not the padding
  const BundleConfigs xl = published_configs(ModelFamily::kSdxl, "epsilon", clip);
  EXPECT_EQ(xl.tokenizer.pad_token_id(), 5);
  EXPECT_EQ(xl.tokenizer_2->pad_token_id(), 0);
  EXPECT_EQ(xl.tokenizer_2->encode("a!"), (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(published_configs(ModelFamily::kSd2, "epsilon", clip).tokenizer.pad_token_id(), 0);
}

TEST(PublishedConfigs, FitEachOther) {
  const test::ScratchFolder scratch;
  const std::filesystem::path clip = write_vocabulary(scratch);
  for (const ModelFamily family : {ModelFamily::kSd1, ModelFamily::kSd2, ModelFamily::kSdxl}) {
    for (const char* prediction : {"epsilon", "v_prediction"}) {
      const BundleConfigs configs = published_configs(family, prediction, clip);
      EXPECT_TRUE(configs.find_misfits("folder").empty()) << family_name(family);
      EXPECT_EQ(family_of(configs, "folder"), family);
      EXPECT_EQ(configs.scheduler["prediction_type"], prediction);
      EXPECT_NO_THROW(make_scheduler(configs.index.scheduler_class, configs.scheduler, "scheduler"));
      // What is written is what is read again.
      EXPECT_EQ(UNetConfig::from_json(configs.unet.to_json(), "unet"), configs.unet);
      EXPECT_EQ(VaeConfig::from_json(configs.vae.to_json(), "vae"), configs.vae);
      EXPECT_EQ(ClipTextConfig::from_json(configs.text_encoder.to_json(), "text"), configs.text_encoder);
    }
  }
}

TEST(PublishedConfigs, TellTheTwoKindsOfSd2Apart) {
  const test::ScratchFolder scratch;
  const std::filesystem::path clip = write_vocabulary(scratch);
  const BundleConfigs base = published_configs(ModelFamily::kSd2, "epsilon", clip);
  EXPECT_EQ(base.unet.sample_size, 64);
  EXPECT_EQ(base.index.scheduler_class, "PNDMScheduler");
  const BundleConfigs large = published_configs(ModelFamily::kSd2, "v_prediction", clip);
  EXPECT_EQ(large.unet.sample_size, 96);
  EXPECT_EQ(large.vae.sample_size, 768);
  EXPECT_EQ(large.index.scheduler_class, "DDIMScheduler");
}

}  // namespace
}  // namespace sdtune::model
