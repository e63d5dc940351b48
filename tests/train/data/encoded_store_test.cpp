#include "train/data/encoded_store.h"

#include <ATen/Functions.h>

#include <fstream>

#include "tests/support/faulty_file_system.h"
#include "tests/train/data/image_folder.h"
#include "train/data/latent_cache.h"

namespace sdtune::train {
namespace {

class EncodedStoreTest : public ImageFolder {
 protected:
  EncodedStore store(const std::string& encoder = "weights 1", bool writes = true) {
    return EncodedStore(files_, folder_ / "cache", encoder, writes,
                        [this](const Problem& problem) { warnings_.push_back(problem); });
  }
  // Moments of the images, and how often an encoder was asked.
  torch::Tensor latents(EncodedStore* kept, LatentOptions options = {}) {
    options.crop.resolution = 8;
    LatentCache cache(
        options,
        [this](const torch::Tensor& images) {
          ++encodings_;
          return model::Moments{images.mean({2, 3}, true), images.mean({2, 3}, true).mul(0.1)};
        },
        kept);
    cache.load({{folder_ / "a.png", {}}, {folder_ / "b.png", {}}}, {});
    return cache.latents({{0, 0, false, 0}, {0, 1, false, 1}});
  }

  test::FaultyFileSystem files_;
  std::vector<Problem> warnings_;
  int encodings_ = 0;
};

TEST_F(EncodedStoreTest, KeepsTensorsByTheirInputs) {
  EncodedStore first = store();
  const torch::Tensor numbers = torch::arange(6, torch::kFloat32).reshape({2, 3});
  first.save(first.key({"a", "b"}), {{"mean", numbers}});
  EncodedStore again = store();
  const auto found = again.load(again.key({"a", "b"}));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(torch::equal(found->at(0).second, numbers));
  EXPECT_FALSE(again.load(again.key({"ab", ""})).has_value());
  EXPECT_FALSE(again.load(again.key({"a", "b", ""})).has_value());
  EncodedStore other = store("weights 2");
  EXPECT_FALSE(other.load(other.key({"a", "b"})).has_value());
  EXPECT_EQ(again.found(), 1);
  EXPECT_EQ(again.missed(), 2);
}

TEST_F(EncodedStoreTest, StaleEntriesAreNeverUsed) {
  image("a.png", 1);
  image("b.png", 2);
  EncodedStore kept = store();
  const torch::Tensor first = latents(&kept);
  EXPECT_EQ(encodings_, 2);
  EXPECT_TRUE(torch::equal(latents(&kept), first));
  EXPECT_EQ(encodings_, 2) << "the second time all is found";
  EXPECT_TRUE(torch::equal(latents(nullptr), first)) << "the cache changes no number";
  EXPECT_EQ(encodings_, 4);
  image("b.png", 3);  // the same name, another content
  EXPECT_FALSE(torch::equal(latents(&kept), first));
  EXPECT_EQ(encodings_, 5);
  LatentOptions options;
  options.filter = model::Filter::kBilinear;
  latents(&kept, options);
  EXPECT_EQ(encodings_, 7) << "another filter is another preprocessing";
  options.random_flip = true;
  latents(&kept, options);
  EXPECT_EQ(encodings_, 9);
  EncodedStore retrained = store("weights 2");
  latents(&retrained);
  EXPECT_EQ(encodings_, 11);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(EncodedStoreTest, DamageIsSaidAndMended) {
  EncodedStore kept = store();
  const std::string key = kept.key({"x"});
  const torch::Tensor numbers = torch::ones({64});
  kept.save(key, {{"mean", numbers}});
  const std::filesystem::path file = folder_ / "cache" / (key + ".safetensors");
  const auto size = std::filesystem::file_size(file);
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(size - 2));
    bytes.put('\x41');
  }
  EXPECT_FALSE(kept.load(key).has_value()) << "one byte differs";
  std::filesystem::resize_file(file, size / 2);
  EXPECT_FALSE(kept.load(key).has_value()) << "cut";
  std::ofstream(file, std::ios::binary) << "no header";
  EXPECT_FALSE(kept.load(key).has_value());
  ASSERT_EQ(warnings_.size(), 3u);
  EXPECT_NE(warnings_[0].what.find("damaged"), std::string::npos);
  kept.save(key, {{"mean", numbers}});
  EXPECT_TRUE(kept.load(key).has_value());
}

TEST_F(EncodedStoreTest, AFullDiskCostsAWarningOnly) {
  test::FaultyFileSystem full(test::Fault::kFailOnward, 2);
  EncodedStore kept(full, folder_ / "cache", "weights", true,
                    [this](const Problem& problem) { warnings_.push_back(problem); });
  for (const char* name : {"1", "2", "3"}) kept.save(kept.key({name}), {{"mean", torch::ones({2})}});
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_FALSE(kept.load(kept.key({"1"})).has_value());
}

TEST_F(EncodedStoreTest, OnlyAWriterWrites) {
  EncodedStore reader = store("weights 1", false);
  reader.save(reader.key({"x"}), {{"mean", torch::ones({2})}});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(EncodedStoreTest, CaptionsAreEncodedOnce) {
  EncodedStore kept = store();
  std::int64_t rows = 0;
  const auto encode = [&](const model::PromptIds& ids) {
    rows += ids.ids.size(0);
    return model::PromptEmbeds{ids.ids.to(torch::kFloat32).unsqueeze(-1), ids.ids.to(torch::kFloat32).slice(1, 0, 2)};
  };
  const torch::Tensor ids = torch::arange(12, torch::kInt64).reshape({3, 4});
  const model::PromptEmbeds first = encode_with_store(kept, {ids, torch::Tensor()}, encode);
  EXPECT_TRUE(torch::equal(first.context.squeeze(-1).to(torch::kInt64), ids));
  const torch::Tensor more = torch::cat({ids.slice(0, 2, 3), ids.slice(0, 0, 1).add(100), ids.slice(0, 0, 1)});
  const model::PromptEmbeds second = encode_with_store(kept, {more, torch::Tensor()}, encode);
  EXPECT_TRUE(torch::equal(second.context.squeeze(-1).to(torch::kInt64), more));
  EXPECT_EQ(second.pooled.sizes(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(rows, 4) << "only the new one";
  encode_with_store(kept, {ids, ids}, encode);
  EXPECT_EQ(rows, 7) << "a second tokenizer makes another caption of it";
}

}  // namespace
}  // namespace sdtune::train
