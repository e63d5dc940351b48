#include "model/image/orientation.h"

#include <gtest/gtest.h>

#include <string>

namespace sdtune::model {
namespace {

// One channel value a pixel: 1 2 3 over 4 5 6.
Image sample() {
  Image image{3, 2, {}};
  for (std::uint8_t value = 1; value <= 6; ++value) image.rgb.insert(image.rgb.end(), 3, value);
  return image;
}

std::string values(const Image& image) {
  std::string text;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) text += static_cast<char>('0' + image.rgb[i]);
  return text;
}

TEST(Orientation, TurnsAsExifDefines) {
  const char* expected[] = {"123456", "321654", "654321", "456123", "142536", "415263", "635241", "362514"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image seen = oriented(sample(), orientation);
    EXPECT_EQ(values(seen), expected[orientation - 1]) << orientation;
    EXPECT_EQ(seen.width, orientation >= 5 ? 2 : 3);
  }
}

TEST(Orientation, MirrorTwiceIsNothing) {
  EXPECT_EQ(values(mirrored(sample())), "321654");
  EXPECT_EQ(values(mirrored(mirrored(sample()))), values(sample()));
}

TEST(Orientation, DamagedExifIsNoTurn) {
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("II*"), 1);
  EXPECT_EQ(exif_orientation(std::string(500, '\xff')), 1);
  // A little-endian block with one entry: orientation 6.
  const std::string head("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  EXPECT_EQ(exif_orientation(head + std::string("\x06\0\0\0\0\0\0\0", 8)), 6);
  EXPECT_EQ(exif_orientation(head + std::string("\x09\0\0\0\0\0\0\0", 8)), 1);
  EXPECT_EQ(find_exif_orientation("II*"), std::nullopt);
  EXPECT_EQ(find_exif_orientation(head + std::string("\x01\0\0\0\0\0\0\0", 8)), 1) << "upright, and said so";
}

}  // namespace
}  // namespace sdtune::model
