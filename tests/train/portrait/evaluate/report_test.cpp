#include "train/portrait/evaluate/report.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sdtune::train::evaluate {
namespace {

Evaluation some_evaluation() {
  Evaluation evaluation;
  Scores tuned, shuffled;
  tuned.add(kAccepted, {0.75, 0.5, 0.875, 8});
  tuned.add(kLeak, {0.0, 0.0, 0.25, 8});
  shuffled.add(kAccepted, {0.125, 0.0, 0.25, 8});
  evaluation.rows = {{"tuned", tuned}, {"shuffled", shuffled}};
  evaluation.accepted_of_renders = 0.8;
  evaluation.references = torch::zeros({5, 3, 64, 64});
  evaluation.base_images = torch::ones({3, 3, 64, 64});
  evaluation.tuned_images = torch::full({3, 3, 64, 64}, -1.0);
  return evaluation;
}

TEST(Report, TableHasARowAFigureAndADashWhereThereIsNone) {
  const std::string table = table_of(some_evaluation());
  EXPECT_NE(table.find("0.750 (0.500..0.875)"), std::string::npos) << table;
  const std::size_t leak = table.find("\nleak");
  ASSERT_NE(leak, std::string::npos);
  EXPECT_NE(table.substr(leak, table.find('\n', leak + 1) - leak).find(" - "), std::string::npos);
  EXPECT_NE(table.find("accepted_of_renders     0.800"), std::string::npos) << table;
}

TEST(Report, JsonHasEveryFigure) {
  const Json json = to_json(some_evaluation());
  EXPECT_EQ(json["rows"]["tuned"]["accepted"]["value"], 0.75);
  EXPECT_EQ(json["rows"]["tuned"]["accepted"]["count"], 8);
  EXPECT_EQ(json["rows"]["shuffled"].size(), 1u);
  EXPECT_EQ(json["accepted_of_renders"], 0.8);
}

TEST(Report, SheetHasThreeRowsOfTheWidestsLength) {
  const Image sheet = sheet_of(some_evaluation());
  EXPECT_EQ(sheet.width, 5 * 64 + 6 * 4);
  EXPECT_EQ(sheet.height, 3 * 64 + 4 * 4);
  const auto grey_at = [&](std::int64_t column, std::int64_t row) {
    const std::int64_t x = 4 + column * 68 + 32, y = 4 + row * 68 + 32;
    return static_cast<int>(sheet.rgb[static_cast<std::size_t>(3 * (y * sheet.width + x))]);
  };
  EXPECT_EQ(grey_at(0, 0), 128);
  EXPECT_EQ(grey_at(2, 1), 255);
  EXPECT_EQ(grey_at(2, 2), 0);
  EXPECT_EQ(grey_at(4, 2), 255);  // nothing there
}

TEST(Report, KnowsItsRows) {
  EXPECT_EQ(some_evaluation().row("shuffled").find(kAccepted)->value, 0.125);
  EXPECT_THROW(some_evaluation().row("nobody"), std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::evaluate
