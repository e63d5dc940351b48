#include "train/data/photo_folder.h"

#include <algorithm>

#include "tests/train/data/image_folder.h"

namespace sdtune::train {
namespace {

class PhotoFolderTest : public ImageFolder {};

std::string names(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += std::filesystem::path(problem.where).filename().string() + " ";
  return text;
}

TEST_F(PhotoFolderTest, SortsNaturallyAndReadsCaptions) {
  image("img10.png", 1);
  image("img9.png", 2);
  image("IMG2.jpg", 3);  // the ending does not matter
  write("img10.txt", "\xef\xbb\xbf  a photo of sks\r\nperson \n");
  write("IMG2.TXT", "two");  // nor a caption's
  const PhotoFolder found = scan_photos(folder_, "a photo", true);
  ASSERT_EQ(found.photos.size(), 3u);
  EXPECT_EQ(found.photos[0].path.filename(), "IMG2.jpg");
  EXPECT_EQ(found.photos[0].caption, "two");
  EXPECT_EQ(found.photos[1].path.filename(), "img9.png");
  EXPECT_EQ(found.photos[1].caption, "a photo");
  EXPECT_EQ(found.photos[2].caption, "a photo of sks  person");
  EXPECT_EQ(found.photos[2].width, 6);
  EXPECT_EQ(found.photos[2].sha256.size(), 64u);
  EXPECT_TRUE(found.bad.empty() && found.left_out.empty() && found.warnings.empty());
  EXPECT_EQ(scan_photos(folder_, "a photo", false).photos[2].caption, "a photo");
}

TEST_F(PhotoFolderTest, ListsAllThatIsBadAndAllThatIsLeftOut) {
  image("a.png", 1);
  image("copy of a.png", 1);
  write("b.jpg", "");
  write("c.heic", std::string("\0\0\0\x18"
                              "ftypheic",
                              12) +
                      std::string(16, '\0'));
  write("d.png", model::encode_png(test_image(5, 5)).substr(0, 60));
  image("e.png", 5);
  write("e.txt", " \n");
  image("f.png", 6);
  write("f.txt", "caf\xe9");
  write("orphan.txt", "a caption");
  write(".DS_Store", "x");
  write("notes.md", "x");
  write("metadata.json", "{}");
  std::filesystem::create_directories(folder_ / "more");
  const PhotoFolder found = scan_photos(folder_, "p", true);
  EXPECT_EQ(found.photos.size(), 2u);
  EXPECT_EQ(names(found.bad), "b.jpg c.heic d.png e.txt f.txt ");
  EXPECT_EQ(names(found.left_out), ".DS_Store metadata.json more notes.md ");
  EXPECT_EQ(names(found.warnings), "orphan.txt copy of a.png ");
  EXPECT_NE(found.bad[1].what.find("HEIC"), std::string::npos);
  EXPECT_NE(found.bad[2].what.find("truncated"), std::string::npos);
  EXPECT_NE(found.bad[4].what.find("byte 3"), std::string::npos);
}

TEST_F(PhotoFolderTest, WarnsOfCaptionsThatKohyasTrainerWouldRead) {
  for (const char* name : {"a", "b", "c"}) {
    image(std::string(name) + ".png", static_cast<std::uint32_t>(name[0]));
    write(std::string(name) + ".caption", "a caption");
  }
  write("b.txt", "read");
  write("notes.caption", "of no photo");
  const PhotoFolder found = scan_photos(folder_, "p", true);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(names(found.warnings), "a.caption ");
  EXPECT_EQ(found.warnings[0].what, "is not read as its photo's caption, nor is 1 other");
  EXPECT_EQ(found.photos[0].caption, "p");
  EXPECT_EQ(names(found.left_out), "a.caption b.caption c.caption notes.caption ");
  EXPECT_TRUE(scan_photos(folder_, "p", false).warnings.empty());
}

// A few kilobytes that would be resized to hundreds of gigabytes.
TEST_F(PhotoFolderTest, RefusesAPhotoThatIsAStrip) {
  image("a.png", 1, 1, 1000);
  image("b.png", 2, 1, 1001);
  image("c.png", 3, 2003, 2);
  const PhotoFolder found = scan_photos(folder_, "p", true);
  EXPECT_EQ(found.photos.size(), 1u);
  EXPECT_EQ(names(found.bad), "b.png c.png ");
  EXPECT_EQ(found.bad[0].what,
            "is too narrow for its length (got 1x1001 px; allowed: up to 1000 times as long as wide)");
}

// Each level would take its part of the stack where the error shows the face.
TEST_F(PhotoFolderTest, NamesALineOfMetadataThatIsNestedAMillionLevelsDeep) {
  constexpr std::size_t kLevels = 1'000'000;
  const std::string lists = std::string(kLevels, '[') + std::string(kLevels, ']');
  image("a.png", 1);
  write("metadata.jsonl", R"({"file_name": "a.png", "other": )" + lists + R"(, "text": "sks"})" + "\n" +
                              R"({"file_name": "b.png", "face": )" + lists + "}\n" + lists + "\n");
  const PhotoFolder found = scan_photos(folder_, "p", true);
  ASSERT_EQ(found.photos.size(), 1u);
  EXPECT_EQ(found.photos[0].caption, "sks");
  ASSERT_EQ(found.bad.size(), 2u);
  EXPECT_TRUE(found.bad[0].where.ends_with("metadata.jsonl:2"));
  EXPECT_TRUE(found.bad[0].what.starts_with("face must be [left, top, width, height]"));
  EXPECT_LT(found.bad[0].what.size(), 100u);
  EXPECT_EQ(found.bad[1].what, "is no JSON object");
}

TEST_F(PhotoFolderTest, FolderWithoutPhotosIsAnError) {
  EXPECT_THROW(scan_photos(folder_, "p", true), DataError);
  EXPECT_THROW(scan_photos(folder_ / "absent", "p", true), DataError);
  EXPECT_THROW(scan_photos(write("file.png", "x"), "p", true), DataError);
}

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("img2", "img10"));
  EXPECT_FALSE(natural_less("img10", "img2"));
  EXPECT_TRUE(natural_less("a", "b"));
  EXPECT_TRUE(natural_less("img", "img1"));
  EXPECT_TRUE(natural_less("img01", "img1") != natural_less("img1", "img01"));
  EXPECT_FALSE(natural_less("img1", "img1"));
  EXPECT_TRUE(natural_less("1000000000000000000000001", "1000000000000000000000002"));
}

}  // namespace
}  // namespace sdtune::train
