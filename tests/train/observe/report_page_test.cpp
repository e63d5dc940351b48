// When the page is written; what a browser makes of it is in tests/python/test_report*.py.
#include "train/observe/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/image/png_write.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Report : public testing::Test {
 protected:
  ReportPage page(FileSystem& files, std::optional<double> price = std::nullopt) {
    return {files, price, [this](const Problem& problem) { warnings_.push_back(problem.line()); },
            [this] {
              now_ += reading_;
              return now_;
            }};
  }
  RunSummary summary() const {
    RunSummary result;
    result.output = scratch_.path();
    result.total_steps = 60;
    result.batch = 2;
    return result;
  }
  std::string text() const { return is_file(path_) ? read_file(path_) : ""; }

  test::ScratchFolder scratch_;
  const std::filesystem::path path_ = scratch_.path() / "report.html";
  double now_ = 500;    // s
  double reading_ = 0;  // that reading the clock takes
  std::vector<std::string> warnings_;
};

TEST_F(Report, IsWrittenEveryHalfMinute) {
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  now_ += 29;
  report.on_step({});
  EXPECT_EQ(text(), "");
  now_ += 1;
  scratch_.write("metrics.jsonl", "{\"attempt\":1,\"step\":7,\"loss\":0.5}\n");
  report.on_step({});
  EXPECT_THAT(text(), HasSubstr("goes on: step 7 of 60"));
  EXPECT_THAT(text(), HasSubstr("http-equiv=\"refresh\""));
  std::filesystem::remove(path_);
  now_ += 29;
  report.on_step({});
  EXPECT_EQ(text(), "");
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_THAT(text(), HasSubstr("done after step 60 of 60"));
  EXPECT_THAT(text(), Not(HasSubstr("refresh")));
}

TEST_F(Report, TakesAHundredthOfTheTime) {
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  now_ += 30;
  reading_ = 4;  // the page took that long
  report.on_step({});
  reading_ = 0;
  std::filesystem::remove(path_);
  now_ += 390;
  report.on_step({});
  EXPECT_EQ(text(), "");
  now_ += 15;
  report.on_step({});
  EXPECT_NE(text(), "");
}

TEST_F(Report, ThatCannotBeWrittenWarnsOnce) {
  test::FaultyFileSystem full(test::Fault::kFailOnward, 0);
  ReportPage report = page(full);
  report.on_start(summary());
  now_ += 30;
  report.on_step({});
  report.on_end({RunEnd::kFailed});
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("the run itself is as it should be"));
}

TEST_F(Report, ShowsPhotosThenBaseAndModelThenTheRest) {
  const Image grey{8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 99)};
  for (const char* name : {"me.png", "samples/step-00000000/00_seed-3.png", "samples/step-00000060/00_seed-3.png"}) {
    const std::filesystem::path path = scratch_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    model::write_png(real_file_system(), path, grey);
  }
  scratch_.write("metrics.jsonl", "{\"step\":1,\"loss\":0.5,\"epoch\":1}\n{\"step\":60,\"loss\":0.25,\"epoch\":30}\n");
  scratch_.write("identity.jsonl", "{\"step\":0,\"identity\":0.1}\n{\"step\":60,\"identity\":0.8}\n");
  scratch_.write("config.yaml", "# Run\nseed: 3  # --seed\nmethod: full  # default\n");
  scratch_.write("run.json",
                 Json{{"images", {{{"path", (scratch_.path() / "me.png").string()}}, {{"path", "gone.png"}}}},
                      {"attempts",
                       {{{"attempt", 1},
                         {"first_step", 0},
                         {"started", 1000},
                         {"ended", 4600},
                         {"last_step", 40},
                         {"cause", "SIGTERM"},
                         {"exit_code", 143},
                         {"redone_steps", 0}},
                        {{"attempt", 2},
                         {"first_step", 40},
                         {"started", 8000},
                         {"ended", 11600},
                         {"last_step", 60},
                         {"cause", "all steps are done"},
                         {"exit_code", 0},
                         {"redone_steps", 0}}}}}
                     .dump());
  ReportPage report = page(real_file_system(), 3.0);
  report.on_start(summary());
  report.on_warning({"photo", "is <dark>", ""});
  report.on_end({RunEnd::kDone, 60, 60});
  const std::string html = text();
  std::size_t last = 0;
  for (const char* heading :
       {"Photos", "Base and model, same prompt and seeds", "Likeness and validation over the steps", "Curves",
        "The run", "What was set, and where it came from", "Cost", "Attempts", "Warnings"}) {
    const std::size_t at = html.find("<h2>" + std::string(heading) + "</h2>");
    ASSERT_NE(at, std::string::npos) << heading;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  EXPECT_THAT(html, HasSubstr("alt=\"photo me.png\""));
  EXPECT_THAT(html, HasSubstr("and 1 more"));
  EXPECT_THAT(html, HasSubstr("alt=\"base, seed 3\""));
  EXPECT_THAT(html, HasSubstr("alt=\"step 60, seed 3\""));
  EXPECT_THAT(html, HasSubstr("likeness 0.80"));
  EXPECT_THAT(html, HasSubstr("<td>seed</td><td>3</td><td>--seed</td>"));
  EXPECT_THAT(html, Not(HasSubstr("<td>method</td>")));
  EXPECT_THAT(html, HasSubstr("<td>the run</td><td>6.00 at 3.00 an hour</td>"));  // two hours
  EXPECT_THAT(html, HasSubstr("<td>an epoch</td><td>0.2</td>"));
  EXPECT_THAT(html, HasSubstr("<td>1000 photos trained on</td><td>50</td>"));  // 60 steps of 2
  EXPECT_THAT(html, HasSubstr("SIGTERM (exit code 143)"));
  EXPECT_THAT(html, HasSubstr("is &lt;dark&gt;"));
}

}  // namespace
}  // namespace sdtune::train
