#include "train/data/photo_set.h"

#include "tests/train/data/image_folder.h"

namespace sdtune::train {
namespace {

class PhotoSetTest : public ImageFolder {
 protected:
  std::filesystem::path image_in(const std::string& folder, const std::string& name, std::uint32_t seed) {
    std::filesystem::create_directories(folder_ / folder);
    return image(folder + "/" + name, seed);
  }
  ConceptOptions subject(const std::string& folder) const {
    ConceptOptions result;
    result.images = (folder_ / folder).string();
    result.instance_prompt = "a photo of sks person";
    result.class_prompt = "a photo of a person";
    return result;
  }
  DataOptions options_;
};

TEST_F(PhotoSetTest, KohyasFoldersHaveRepeatsAndPrompt) {
  image_in("me", "plain.png", 1);
  image_in("me/10_sks person", "a.png", 2);
  image_in("me/10_sks person", "b.png", 3);
  write("me/10_sks person/b.txt", "sks person laughs");
  image_in("me/2024_holidays", "c.png", 4);
  std::filesystem::create_directories(folder_ / "me/other");
  const PhotoFolder found = scan_photos({subject("me")}, options_);
  ASSERT_EQ(found.photos.size(), 3u);
  EXPECT_EQ(found.photos[0].caption, "a photo of sks person");
  EXPECT_EQ(found.photos[0].repeats, 1);
  EXPECT_EQ(found.photos[1].name, "10_sks person/a.png");
  EXPECT_EQ(found.photos[1].caption, "sks person");
  EXPECT_EQ(found.photos[1].repeats, 10);
  EXPECT_FALSE(found.photos[1].has_caption);
  EXPECT_EQ(found.photos[2].caption, "sks person laughs");
  EXPECT_EQ(found.left_out.size(), 2u) << "a year is no number of repeats, and other folders are not read";
}

TEST_F(PhotoSetTest, AFileInTwoFoldersIsNamed) {
  const std::filesystem::path first = image_in("me", "plain.png", 1);
  const std::filesystem::path copy = image_in("me/10_sks person", "a.png", 1);
  image_in("me/10_sks person", "b.png", 2);
  const std::filesystem::path other = image_in("you", "c.png", 2);
  const std::vector<Problem> alone = scan_photos({subject("me")}, options_).warnings;
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].where, copy.string());
  EXPECT_EQ(alone[0].what, "the same file as " + first.string());
  const std::vector<Problem> both = scan_photos({subject("me"), subject("you")}, options_).warnings;
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].where, other.string());
}

TEST(KohyaFolder, IsNoFolderOfACamera) {
  for (const char* name : {"100_PANA", "101_FUJI", "999_0714", "123_A_B1"}) EXPECT_FALSE(kohya_folder(name)) << name;
  for (const char* name : {"100_pana", "100_PANAM", "100_SKS", "10_PANAS", "100_SKS man"}) {
    EXPECT_TRUE(kohya_folder(name)) << name;
  }
  EXPECT_EQ(kohya_folder("100_SKS man")->repeats, 100);
}

TEST_F(PhotoSetTest, SubjectsHaveTheirOwnPromptAndRepeats) {
  image_in("a", "1.png", 1);
  image_in("b/3_ohwx dog", "1.png", 2);
  std::vector<ConceptOptions> concepts = {subject("a"), subject("b")};
  concepts[1].repeats = 2;
  concepts[0].instance_prompt = "a drawing of [trigger]";
  options_.trigger_word = "sks man";
  const PhotoFolder found = scan_photos(concepts, options_);
  ASSERT_EQ(found.photos.size(), 2u);
  EXPECT_EQ(found.photos[0].name, "1: 1.png");
  EXPECT_EQ(found.photos[0].caption, "a drawing of sks man");
  EXPECT_EQ(found.photos[1].name, "2: 3_ohwx dog/1.png");
  EXPECT_EQ(found.photos[1].repeats, 6);
  EXPECT_EQ(found.photos[1].subject, 1u);
  EXPECT_THROW(scan_photos({subject("absent")}, options_), DataError);
  std::filesystem::create_directories(folder_ / "empty/4_x");
  EXPECT_THROW(scan_photos({subject("empty")}, options_), DataError);
}

TEST_F(PhotoSetTest, HeldOutPhotosHaveTheCaptionsOfTraining) {
  image_in("held", "1.png", 1);
  image_in("held", "2.png", 2);
  write("held/1.txt", "[trigger] laughs");
  write("held/2.txt", "on a beach");
  const auto captions = [&] {
    const PhotoFolder found = scan_held_out(options_, folder_ / "held");
    return std::vector<std::string>{found.photos.at(0).caption, found.photos.at(1).caption};
  };
  options_.instance_prompt = "a photo of sks person";
  options_.class_prompt = "a photo of a person";
  EXPECT_EQ(captions(), (std::vector<std::string>{"sks person laughs", "on a beach"}));
  options_.trigger_word = "ohwx";
  EXPECT_EQ(captions(), (std::vector<std::string>{"ohwx laughs", "ohwx, on a beach"}));
  options_.use_captions = false;
  EXPECT_EQ(captions(), (std::vector<std::string>{"a photo of sks person", "a photo of sks person"}));
}

TEST_F(PhotoSetTest, HeldOutFoldersOfKohyasHaveTheirPrompts) {
  image_in("held/10_ohwx man", "a.png", 1);
  image_in("held/3_ohwx dog", "b.png", 2);
  write("held/3_ohwx dog/b.txt", "[trigger] sleeps");
  options_.concepts = {R"({"images": "me", "instance_prompt": "a photo of ohwx man"})"};
  const PhotoFolder found = scan_held_out(options_, folder_ / "held");
  ASSERT_EQ(found.photos.size(), 2u);
  EXPECT_EQ(found.photos[0].name, "3_ohwx dog/b.png");
  EXPECT_EQ(found.photos[0].caption, "ohwx man sleeps");
  EXPECT_EQ(found.photos[1].caption, "ohwx man");
  EXPECT_EQ(found.photos[1].repeats, 1) << "each counts once";
  std::filesystem::create_directories(folder_ / "empty/4_x");
  EXPECT_THROW(scan_held_out(options_, folder_ / "empty"), DataError);
}

TEST_F(PhotoSetTest, HeldOutPhotosHaveThePromptOfTheSubject) {
  image_in("held", "1.png", 1);
  image_in("held", "2.png", 2);
  write("held/2.txt", "[trigger] laughs");
  const auto captions = [&] {
    const PhotoFolder found = scan_held_out(options_, folder_ / "held");
    return std::vector<std::string>{found.photos.at(0).caption, found.photos.at(1).caption};
  };
  options_.concepts = {R"({"images": "me", "instance_prompt": "a photo of ohwx man"})"};
  EXPECT_EQ(captions(), (std::vector<std::string>{"a photo of ohwx man", "ohwx man laughs"}));
  options_.concepts.push_back(R"({"images": "you"})");
  EXPECT_EQ(captions().at(1), "[trigger] laughs") << "of which subject is not known";
  options_.trigger_word = "ohwx";
  EXPECT_EQ(captions().at(1), "ohwx laughs");
  options_.concepts = {"[1]"};
  EXPECT_THROW(scan_held_out(options_, folder_ / "held"), ConfigError);
}

TEST_F(PhotoSetTest, WordsAreSaidOfASubject) {
  std::vector<Photo> photos(2);
  photos[0].caption = "OHWX man, laughing";
  photos[1].caption = "a photo of sks person";
  photos[1].subject = 1;
  EXPECT_TRUE(is_said_of(photos, 0, "ohwx man"));
  EXPECT_FALSE(is_said_of(photos, 0, "sks person"));
  EXPECT_TRUE(is_said_of(photos, 1, "sks person"));
  EXPECT_TRUE(is_said_of({}, 0, ""));
}

TEST_F(PhotoSetTest, MetadataGivesCaptionsAndFaces) {
  for (const char* name : {"a.png", "b.png", "c.png"}) image_in("me", name, static_cast<std::uint32_t>(name[0]));
  write("me/b.txt", "from the text file");
  write("me/metadata.jsonl",
        "{\"file_name\": \"a.png\", \"text\": \" [trigger]\\nlaughs \", \"face\": [1, 2, 3.5, 1], \"tags\": []}\n\n"
        "{\"file_name\": \"b.png\", \"text\": \"from the table\"}\n{\"file_name\": \"lost.png\"}\n");
  const PhotoFolder found = scan_photos({subject("me")}, options_);
  ASSERT_EQ(found.photos.size(), 3u);
  EXPECT_EQ(found.photos[0].caption, "sks person laughs");
  EXPECT_EQ(found.photos[0].face, (model::ImageBox{1, 2, 3.5, 1}));
  EXPECT_EQ(found.photos[1].caption, "from the text file");
  EXPECT_EQ(found.photos[2].caption, "a photo of sks person");
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].what.find("lost.png"), std::string::npos);
  options_.trigger_word = "ohwx";
  EXPECT_EQ(scan_photos({subject("me")}, options_).photos[1].caption, "ohwx, from the text file");
}

TEST_F(PhotoSetTest, BadMetadataIsNamedByItsLine) {
  image_in("me", "a.png", 1);
  write("me/metadata.jsonl",
        "{\"file_name\": \"a.png\"}\nno json\n{\"text\": \"x\"}\n{\"file_name\": \"b\", \"face\": [1, 2]}\n"
        "{\"file_name\": \"a.png\"}\n{\"file_name\": \"c\", \"text\": \" \"}\n");
  const PhotoFolder found = scan_photos({subject("me")}, options_);
  ASSERT_EQ(found.bad.size(), 5u);
  for (std::size_t i = 0; i < found.bad.size(); ++i) {
    EXPECT_TRUE(found.bad[i].where.ends_with("metadata.jsonl:" + std::to_string(i + 2))) << found.bad[i].line();
  }
}

}  // namespace
}  // namespace sdtune::train
