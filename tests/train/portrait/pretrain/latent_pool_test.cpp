#include "train/portrait/pretrain/latent_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/tokenizer/byte_pair_learner.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/pretrain/base_design.h"
#include "train/portrait/renderer/portrait_batch.h"

namespace sdtune::train::pretrain {
namespace {

namespace fs = std::filesystem;

model::AutoencoderKL nano_autoencoder(std::uint64_t seed) {
  const BaseDesign design = BaseDesign::named("nano");
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 500; ++i) texts.push_back(portrait::draw_portrait({i / 4, i}, design.detail).caption);
  model::AutoencoderKL vae = new_base(design, learn_tokenizer(texts, design.vocabulary), seed).vae;
  for (const torch::Tensor& weight : vae->parameters()) weight.set_requires_grad(false);
  return vae;
}

PoolOptions pool_of_latents(const fs::path& folder, std::int64_t first, std::int64_t count) {
  return {.folder = folder, .size = 64, .first = first, .count = count, .views = 4, .threads = 1};
}

class LatentPoolOnDisk : public ::testing::Test {
 protected:
  LatentPoolOnDisk() : images_(real_file_system(), pool_of_latents(scratch_.path() / "pictures", 0, 8)) {
    LatentPool(real_file_system(), folder_, vae_, images_).scaling_factor();
  }
  void open(ImagePool& images) { LatentPool(real_file_system(), folder_, vae_, images); }
  std::string refusal(ImagePool& images) {
    try {
      open(images);
    } catch (const ConfigError& error) {
      return error.problems().front().line();
    }
    return "";
  }
  Json record() const { return parse_json(read_file(folder_ / "latents.json"), "latents.json"); }
  void forget_images() const {  // as earlier versions wrote it
    Json found = record();
    found.erase("images");
    found.erase("count");
    write_file_atomically(real_file_system(), folder_ / "latents.json", found.dump());
  }

  test::ScratchFolder scratch_;
  fs::path folder_ = scratch_.path() / "latents";
  model::AutoencoderKL vae_ = nano_autoencoder(1);
  ImagePool images_;
};

TEST_F(LatentPoolOnDisk, IsRefusedForOtherImages) {
  ImagePool others(real_file_system(), pool_of_latents(scratch_.path() / "others", 8, 8));
  EXPECT_NE(refusal(others).find("the latents are of other images (first was 0, is now 8); remove it"),
            std::string::npos);
  ImagePool more(real_file_system(), pool_of_latents(scratch_.path() / "more", 0, 12));
  EXPECT_NE(refusal(more).find("(count was 8, is now 12)"), std::string::npos);
  EXPECT_EQ(refusal(images_), "");
  EXPECT_TRUE(fs::exists(folder_ / "0.safetensors"));
}

TEST_F(LatentPoolOnDisk, OfARecordWithoutImagesIsTakenOverWhereTheNumberFits) {
  const Json whole = record();
  forget_images();
  ImagePool more(real_file_system(), pool_of_latents(scratch_.path() / "more", 0, 12));
  EXPECT_NE(refusal(more).find("0.safetensors has 8, 12 are wanted now"), std::string::npos);
  EXPECT_FALSE(record().contains("images"));
  EXPECT_EQ(refusal(images_), "");
  EXPECT_EQ(record(), whole);
  EXPECT_TRUE(fs::exists(folder_ / "0.safetensors"));
}

TEST_F(LatentPoolOnDisk, OfAnotherAutoencoderIsMadeAgain) {
  vae_ = nano_autoencoder(2);
  open(images_);
  EXPECT_FALSE(fs::exists(folder_ / "0.safetensors"));
}

}  // namespace
}  // namespace sdtune::train::pretrain
