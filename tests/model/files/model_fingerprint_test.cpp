#include "model/files/model_fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sdtune {
namespace {

namespace fs = std::filesystem;

class ModelFingerprint : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part : {"unet", "text_encoder", "vae"}) fs::create_directories(folder_ / part);
    write("unet/diffusion_pytorch_model.safetensors", std::string(3 << 20, 'x'));
    write("text_encoder/model.safetensors", "small");
    write("vae/diffusion_pytorch_model.safetensors", "vae");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& content) const { std::ofstream(folder_ / name) << content; }

  fs::path folder_ = fs::path(testing::TempDir()) / "model_fingerprint";
};

TEST_F(ModelFingerprint, IsThatOfTheContentWhereverTheFolderLies) {
  const std::string first = model_fingerprint(folder_);
  const fs::path moved = folder_.parent_path() / "model_fingerprint_moved";
  fs::rename(folder_, moved);
  EXPECT_EQ(model_fingerprint(moved), first);
  fs::rename(moved, folder_);
  write("vae/diffusion_pytorch_model.safetensors", "another");  // a LoRA does not depend on it
  EXPECT_EQ(model_fingerprint(folder_), first);
}

TEST_F(ModelFingerprint, ChangesWithEveryPartOfALargeFile) {
  const std::string first = model_fingerprint(folder_);
  for (const std::size_t at : {std::size_t{0}, std::size_t{1} << 20, (std::size_t{3} << 20) - 1}) {
    // 64 KiB anywhere: blocks are looked at every 12 KiB here.
    std::string content(3 << 20, 'x');
    const std::size_t start = at > 65536 ? at - 65535 : 0;
    content.replace(start, 65536, std::string(65536, 'y'));
    write("unet/diffusion_pytorch_model.safetensors", content);
    EXPECT_NE(model_fingerprint(folder_), first) << at;
  }
  write("unet/diffusion_pytorch_model.safetensors", std::string((3 << 20) + 1, 'x'));
  EXPECT_NE(model_fingerprint(folder_), first);
}

TEST_F(ModelFingerprint, ChangesWithASmallFileAndItsName) {
  const std::string first = model_fingerprint(folder_);
  write("text_encoder/model.safetensors", "smalL");
  EXPECT_NE(model_fingerprint(folder_), first);
  fs::remove(folder_ / "text_encoder/model.safetensors");
  write("text_encoder/model.fp16.safetensors", "small");
  EXPECT_NE(model_fingerprint(folder_), first);
}

}  // namespace
}  // namespace sdtune
