#include "train/prove/prove_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

using testing::HasSubstr;
using testing::Not;

ProveReport report_of(std::vector<PartResult> parts) {
  return {{{"sdtune", "1"}, {"device", "<b>card</b>"}}, {{"driver", "580"}}, "", std::move(parts)};
}

PartResult passed(const std::string& name) {
  PartResult result;
  result.name = name;
  result.checks = {{"loss", 0.5, {}, 1.0, "of a test"}};
  return result;
}

PartResult unfinished(const std::string& name) {
  PartResult result = failed_part(name, "time");
  result.status = PartStatus::kUnfinished;
  return result;
}

TEST(ProveReport, OneFailedPartDecides) {
  EXPECT_EQ(report_of({passed("a"), passed("b")}).verdict(), "passed");
  EXPECT_EQ(report_of({passed("a"), skipped_part("b", "one GPU")}).verdict(), "passed");
  EXPECT_EQ(report_of({passed("a"), unfinished("b")}).verdict(), "unfinished");
  EXPECT_EQ(report_of({failed_part("a", "wrong"), unfinished("b")}).verdict(), "failed");
}

TEST(ProveReport, SaysAllOfItInOneJson) {
  const Json json = report_json(report_of({passed("a"), failed_part("b", "wrong")}));
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_TRUE(json["planted_fault"].is_null());
  EXPECT_EQ(json["machine"]["driver"], "580");
  EXPECT_EQ(json["parts"].size(), 2U);
  EXPECT_EQ(json["parts"][0]["checks"][0]["passed"], true);
  EXPECT_EQ(json["parts"][1]["reason"], "wrong");
}

TEST(ProveReport, PageHoldsNamesAsText) {
  const std::string page = report_html(report_of({passed("a")}), "/nowhere");
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;card"));
  EXPECT_THAT(page, Not(HasSubstr("<b>card")));
  EXPECT_THAT(page, HasSubstr("at most 1"));
}

TEST(ProveReport, TextNamesTheFilesAndWhatFailed) {
  const std::string text = send_in_text(report_of({failed_part("ranks", "a rank was lost")}));
  for (const char* word : {"prove.json", "prove.html", "ranks: a rank was lost"}) EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(send_in_text(report_of({passed("a")})), Not(HasSubstr("Failed parts")));
}

}  // namespace
}  // namespace sdtune::train
