#include "model/files/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/files/sha256.h"
#include "tests/support/scratch_folder.h"

namespace sdtune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The examples of FIPS 180-4.
TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const test::ScratchFolder scratch;
  EXPECT_EQ(sha256_of_file(scratch.write("a", std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_THROW(sha256_of_file(scratch.path() / "absent"), DataError);
}

class ManifestOfAFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("b.bin", "12345678");
    scratch_.write("sub/a.bin", "abcdefgh");
    Manifest::of_folder(folder()).write(real_file_system(), folder());
  }
  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::vector<Problem> faults() const { return Manifest::read(folder()).verify(folder()); }

  test::ScratchFolder scratch_;
};

TEST_F(ManifestOfAFolder, ListsEveryFileInOrder) {
  const Manifest manifest = Manifest::read(folder());
  ASSERT_THAT(manifest.files, SizeIs(2));
  EXPECT_EQ(manifest.files[0].name, "b.bin");
  EXPECT_EQ(manifest.files[1].name, "sub/a.bin");
  EXPECT_EQ(manifest.files[1].size, 8u);
  EXPECT_EQ(manifest.files[1].sha256, sha256_hex("abcdefgh"));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(ManifestOfAFolder, SeesEveryFlippedBit) {
  for (int bit = 0; bit < 64; ++bit) {
    std::string content = "12345678";
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
    scratch_.write("b.bin", content);
    ASSERT_THAT(faults(), SizeIs(1)) << bit;
    EXPECT_THAT(faults().front().line(), AllOf(HasSubstr("b.bin"), HasSubstr("expected"), HasSubstr("found")));
  }
}

TEST_F(ManifestOfAFolder, NamesAllThatIsDamagedInOrderHoweverManyFilesThereAre) {
  for (int i = 0; i < 100; ++i) scratch_.write("many/" + std::to_string(100 + i), "content");
  Manifest::of_folder(folder()).write(real_file_system(), folder());
  EXPECT_THAT(faults(), IsEmpty());
  for (int i = 0; i < 100; i += 3) scratch_.write("many/" + std::to_string(100 + i), "kontent");
  const std::vector<Problem> found = faults();
  ASSERT_THAT(found, SizeIs(34));
  for (int i = 0; i < 34; ++i) EXPECT_THAT(found[i].line(), HasSubstr("many/" + std::to_string(100 + 3 * i)));
}

TEST_F(ManifestOfAFolder, SeesFilesThatAreCutGrownMissingOrSwapped) {
  scratch_.write("b.bin", "1234567");
  EXPECT_THAT(faults().front().line(), HasSubstr("expected 8 bytes, found 7"));
  scratch_.write("b.bin", "123456789");
  EXPECT_THAT(faults(), SizeIs(1));
  scratch_.write("b.bin", "abcdefgh");
  scratch_.write("sub/a.bin", "12345678");
  EXPECT_THAT(faults(), SizeIs(2));
  std::filesystem::remove(folder() / "b.bin");
  EXPECT_THAT(faults().front().line(), HasSubstr("is missing"));
}

TEST_F(ManifestOfAFolder, IsRefusedWhenItIsNotWhole) {
  const std::string text = read_file(folder() / kManifestName);
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    scratch_.write(kManifestName, text.substr(0, length));
    EXPECT_THROW(Manifest::read(folder()), WeightError) << length;
  }
  std::filesystem::remove(folder() / kManifestName);
  EXPECT_THROW(Manifest::read(folder()), WeightError);
}

TEST_F(ManifestOfAFolder, NeverReadsOutsideItsFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "", ".."}) {
    scratch_.write(kManifestName,
                   std::string(R"({"version":1,"files":[{"name":")") + name + R"(","size":1,"sha256":""}]})");
    EXPECT_THROW(Manifest::read(folder()), WeightError) << name;
  }
}

}  // namespace
}  // namespace sdtune
