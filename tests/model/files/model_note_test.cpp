#include "model/files/model_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/base/error.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

class ModelNoteFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text) const { std::ofstream(folder_ / "sdtune.json") << text; }

  fs::path folder_ = fs::path(testing::TempDir()) / "model_note";
};

TEST_F(ModelNoteFile, ReadsWhatItWrote) {
  write_model_note(real_file_system(), {"sks person \xC3\xA9", true, "org/base", "abc"}, folder_);
  const ModelNote note = read_model_note(folder_);
  EXPECT_EQ(note.trigger, "sks person \xC3\xA9");
  EXPECT_TRUE(note.rendered_people);
  EXPECT_EQ(note.base, "org/base");
  EXPECT_EQ(note.base_fingerprint, "abc");
}

TEST_F(ModelNoteFile, IsEmptyWhereThereIsNone) {
  const ModelNote note = read_model_note(folder_);
  EXPECT_EQ(note.trigger, "");
  EXPECT_FALSE(note.rendered_people);
}

TEST_F(ModelNoteFile, PassesOverWhatALaterVersionSays) {
  write(R"({"trigger": "x", "mood": "good"})");
  EXPECT_EQ(read_model_note(folder_).trigger, "x");
}

TEST_F(ModelNoteFile, NamesAMalformedFile) {
  for (const char* text : {"[]", "{", R"({"trigger": 3})"}) {
    write(text);
    EXPECT_THROW(read_model_note(folder_), WeightError) << text;
  }
}

}  // namespace
}  // namespace sdtune
