// A temporary folder of images for the tests of train/data.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/base/image.h"
#include "model/image/png_write.h"

namespace sdtune::train {

// An image that differs at every pixel and from every other seed.
inline Image test_image(std::int64_t width, std::int64_t height, std::uint32_t seed = 1) {
  Image image{width, height, {}};
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < width * height * 3; ++i) {
    state = state * 1664525u + 1013904223u;
    image.rgb.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  return image;
}

class ImageFolder : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("sdtune_data_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  std::filesystem::path image(const std::string& name, std::uint32_t seed = 1, std::int64_t width = 6,
                              std::int64_t height = 4) {
    return write(name, model::encode_png(test_image(width, height, seed)));
  }

  std::filesystem::path folder_;
};

}  // namespace sdtune::train
