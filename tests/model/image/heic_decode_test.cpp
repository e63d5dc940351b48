#include "model/image/heic_decode.h"

#include <gtest/gtest.h>

#include <string>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

using std::string_literals::operator""s;

// A file that says it is a HEIC and holds nothing.
const std::string kHollow = "\0\0\0\x18"s + "ftypheic" + std::string(16, '\0');

TEST(Heic, IsKnownByItsBrand) {
  EXPECT_TRUE(is_heic(kHollow));
  EXPECT_FALSE(is_heic("\0\0\0\x20"s + "ftypavif" + std::string(20, '\0')));
  EXPECT_FALSE(is_heic("\0\0\0\x18"s + "ftyp"));
  EXPECT_FALSE(is_heic(""));
}

TEST(Heic, OnlyALibraryWithAllThatIsUsedWillDo) {
  EXPECT_FALSE(is_heic_library("libnothing_of_that_name.so.1"));
  EXPECT_FALSE(is_heic_library("libc.so.6"));
  EXPECT_TRUE(is_heic_library("libheif.so.1"));  // scripts/apt-packages.txt
}

TEST(Heic, DamageIsTheFilesAndHasAWayOut) {
  try {
    read_heic_size(kHollow, "photo.heic");
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems().front().where, "photo.heic");
    EXPECT_NE(error.problems().front().hint.find("convert it to JPEG"), std::string::npos);
  }
}

}  // namespace
}  // namespace sdtune::model
