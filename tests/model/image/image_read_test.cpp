// What is compared with Pillow is in tests/python/test_image.py; here is what needs no other decoder.
#include "model/image/image_read.h"

#include <gtest/gtest.h>

#include <string>

#include "model/base/error.h"
#include "model/image/image_header.h"
#include "model/image/png_write.h"

namespace sdtune::model {
namespace {

Image gradient(std::int64_t width, std::int64_t height) {
  Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height * 3; ++i) image.rgb.push_back(static_cast<std::uint8_t>(i * i / 7));
  return image;
}

TEST(ImageRead, PngComesBackAsItWasWritten) {
  const Image image = gradient(31, 17);
  const std::string bytes = encode_png(image, {{"parameters", "Steps: 3"}, {"comment", "gr\xc3\xbc\xc3\x9f"}});
  const Image back = decode_image(bytes, "a.png");
  EXPECT_EQ(back.width, 31);
  EXPECT_EQ(back.height, 17);
  EXPECT_EQ(back.rgb, image.rgb);
  EXPECT_NE(bytes.find("tEXtparameters"), std::string::npos);
  EXPECT_NE(bytes.find("iTXtcomment"), std::string::npos);
}

TEST(ImageRead, EveryCutOfAPngIsRefusedByName) {
  const std::string bytes = encode_png(gradient(9, 9));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      decode_image(std::string_view(bytes).substr(0, size), "cut.png");
      FAIL() << "read " << size << " of " << bytes.size() << " bytes";
    } catch (const DataError& error) {
      EXPECT_EQ(error.problems().front().where, "cut.png");
    }
  }
}

TEST(ImageRead, EveryFlippedByteOfAPngIsRefused) {
  const std::string bytes = encode_png(gradient(9, 9));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_THROW(decode_image(damaged, "flipped.png"), DataError) << at;
  }
}

TEST(ImageRead, RiffWithoutAImageIsRefused) {
  EXPECT_THROW(probe_image(std::string("RIFF\x04\0\0\0WEBP", 12), "a.webp"), DataError);
  EXPECT_THROW(probe_image(std::string("RIFF\0\0\0\0WEBP", 12), "a.webp"), DataError);
  EXPECT_THROW(probe_image(std::string("RIFF\x0e\0\0\0WEBPVP8 \xff\xff\xff\xff\0\0", 22), "a.webp"), DataError);
}

TEST(ImageRead, OneReadingGivesPreviewAndWhole) {
  const std::string bytes = encode_png(gradient(40, 20));
  ImageReading reading(bytes, "a.png");
  EXPECT_EQ(reading.info().width, 40);
  for (const std::int64_t longest : {10, 40, 100}) {
    EXPECT_EQ(reading.preview(longest).rgb, preview_image(bytes, "a.png", longest).image.rgb) << longest;
  }
  EXPECT_EQ(reading.preview(10).width, 10);
  EXPECT_EQ(reading.whole().rgb, gradient(40, 20).rgb);
  EXPECT_EQ(reading.whole().rgb, gradient(40, 20).rgb);  // decoded anew
}

TEST(PngWrite, RefusesWhatIsNoImage) {
  EXPECT_THROW(encode_png(Image{}), DataError);
  EXPECT_THROW(encode_png(Image{2, 2, {1, 2, 3}}), DataError);
  EXPECT_THROW(encode_png(gradient(2, 2), {{"", "no key"}}), DataError);
  EXPECT_THROW(encode_png(gradient(2, 2), {{std::string(80, 'k'), "long key"}}), DataError);
}

}  // namespace
}  // namespace sdtune::model
