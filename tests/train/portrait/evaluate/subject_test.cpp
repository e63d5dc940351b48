#include "train/portrait/evaluate/subject.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/image/png_write.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/renderer/portrait_set.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::evaluate {
namespace {

std::string label(std::uint64_t person_seed, const std::string& more = "") {
  return "{\"file\": \"a.png\", \"person_seed\": " + std::to_string(person_seed) + more + "}\n";
}

std::string label_of_detail(const std::string& detail) {
  return label(portrait::kReservedSeeds + 4, ", \"detail\": " + detail);
}

TEST(Subject, IsReadFromTheLabels) {
  const test::ScratchFolder scratch;
  EXPECT_FALSE(labelled_subject(scratch.path()));
  scratch.write("labels.jsonl", label(portrait::kReservedSeeds + 4) + label(portrait::kReservedSeeds + 4));
  EXPECT_EQ(labelled_subject(scratch.path()).value().number, 4u);
}

TEST(Subject, IsOfTheDetailThatTheLabelsName) {
  const test::ScratchFolder scratch;
  const std::vector<std::pair<std::string, portrait::Detail>> cases = {
      {label(portrait::kReservedSeeds + 4), portrait::Detail::k64},  // of the first versions
      {label_of_detail("\"64\""), portrait::Detail::k64},
      {label_of_detail("\"128\""), portrait::Detail::k128}};
  for (const auto& [text, detail] : cases) {
    scratch.write("labels.jsonl", text);
    const LabelledSubject found = labelled_subject(scratch.path()).value();
    EXPECT_EQ(found.detail, detail) << text;
    EXPECT_NO_THROW(check_detail(found, detail, scratch.path())) << text;
    const bool is_fine = detail == portrait::Detail::k128;
    EXPECT_THROW(check_detail(found, is_fine ? portrait::Detail::k64 : portrait::Detail::k128, scratch.path()),
                 DataError)
        << text;
  }
}

TEST(Subject, IsRefusedWhereItIsSeveralOrKnownFromTraining) {
  const test::ScratchFolder scratch;
  const std::vector<std::string> wrong = {label(portrait::kReservedSeeds) + label(portrait::kReservedSeeds + 1),
                                          label(12),
                                          label(portrait::kReservedSeeds + portrait::kReservedCount),
                                          "{\"file\": \"a.png\"}\n",
                                          label_of_detail("\"64\"") + label_of_detail("\"128\""),
                                          label_of_detail("\"256\""),
                                          label_of_detail("64"),
                                          ""};
  for (const std::string& text : wrong) {
    scratch.write("labels.jsonl", text);
    EXPECT_THROW(labelled_subject(scratch.path()), DataError) << text;
  }
}

TEST(Subject, PhotosOfAnySizeBecomeLikeTheClassifiersRenders) {
  const test::ScratchFolder scratch;
  const auto portrait = portrait::draw_photo(portrait::image_seeds(portrait::PortraitSet::kReserved, 2, 0));
  model::write_png(real_file_system(), scratch.path() / "a.png", portrait::render(portrait.who, portrait.now, 128),
                   {{"Software", "sdtune"}});
  const torch::Tensor photos = photo_references(scratch.path(), 64), renders = rendered_references({}, 2, 2);
  ASSERT_EQ(photos.sizes(), (torch::IntArrayRef{1, 3, 64, 64}));
  EXPECT_LT((photos[0] - renders[0]).abs().mean().item<double>(), 0.05);
  EXPECT_GT((photos[0] - renders[1]).abs().mean().item<double>(), 0.1);  // another view
}

TEST(Subject, PhotosOfACameraHaveNoFigures) {
  const test::ScratchFolder scratch;
  const Image grey{32, 32, std::vector<std::uint8_t>(3 * 32 * 32, 128)};
  model::write_png(real_file_system(), scratch.path() / "a.png", grey, {{"Software", "sdtune"}});
  model::write_png(real_file_system(), scratch.path() / "b.png", grey);
  try {
    photo_references(scratch.path(), 64);
    FAIL() << "must be refused";
  } catch (const DataError& error) {
    EXPECT_NE(error.problems().front().what.find("1 of 2 photos are not renders of sdtune"), std::string::npos);
  }
  scratch.write("labels.jsonl", label(portrait::kReservedSeeds + 4));  // renders that were saved again
  EXPECT_EQ(photo_references(scratch.path(), 64).size(0), 2);
}

}  // namespace
}  // namespace sdtune::train::evaluate
