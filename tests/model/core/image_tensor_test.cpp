#include "model/core/image_tensor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

// Every value of 8 bits, in each channel another.
Image all_values() {
  Image image{256, 1, {}};
  for (int x = 0; x < 256; ++x) {
    for (const int value : {x, 255 - x, x / 2}) image.rgb.push_back(static_cast<std::uint8_t>(value));
  }
  return image;
}

TEST(ImageTensor, EveryValueComesBack) {
  const Image image = all_values();
  const torch::Tensor tensor = image_to_tensor(image);
  ASSERT_EQ(tensor.sizes(), (torch::IntArrayRef{3, 1, 256}));
  const Image back = tensor_to_image((tensor + 1) / 2);
  EXPECT_EQ(back.rgb, image.rgb);
  EXPECT_EQ(back.width, 256);
  EXPECT_EQ(back.height, 1);
}

TEST(ImageTensor, EqualsDiffusersNormalization) {
  // VaeImageProcessor: 2 x (value / 255) - 1, to the last bit.
  const torch::Tensor bytes = image_bytes(all_values());
  const torch::Tensor reference = (bytes.to(torch::kFloat32) / 255 * 2 - 1).permute({2, 0, 1});
  EXPECT_TRUE(torch::equal(normalized_pixels(bytes), reference));
}

TEST(ImageTensor, ClampsAndRoundsToEven) {
  const torch::Tensor pixels = torch::tensor({-1.0, 2.0, 0.5}).view({3, 1, 1}).to(torch::kFloat64);
  EXPECT_EQ(tensor_to_image(pixels).rgb, (std::vector<std::uint8_t>{0, 255, 128}));  // 127.5 to even
  EXPECT_TRUE(tensor_to_images({}).empty());
  EXPECT_EQ(tensor_to_images(torch::zeros({2, 3, 4, 4})).size(), 2U);
}

// What half precision overflowed to would be black.
TEST(ImageTensor, RefusesNumbersThatAreNotFinite) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    torch::Tensor pixels = torch::zeros({2, 3, 4, 4});
    pixels[1][2][3][3] = wrong;
    EXPECT_THROW(tensor_to_images(pixels), NonFiniteError);
  }
}

}  // namespace
}  // namespace sdtune::model
