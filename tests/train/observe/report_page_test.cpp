// When the page is written; what a browser makes of it is in tests/python/test_report*.py.
#include "train/observe/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/image/png_write.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

using ::testing::ContainsRegex;
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
  void write_grey(const std::string& name, std::uint8_t grey, std::int64_t side = 8) const {
    const std::filesystem::path path = scratch_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    const auto bytes = static_cast<std::size_t>(side * side * 3);
    model::write_png(real_file_system(), path, Image{side, side, std::vector<std::uint8_t>(bytes, grey)});
  }
  static ValidationEvent validation(std::int64_t step) {
    ValidationEvent event;
    event.step = step;
    return event;
  }
  // What is behind this description in the page: the image itself.
  std::string image_of(const std::string& description) const {
    const std::string html = text(), mark = "alt=\"" + description + "\"";
    const std::size_t at = html.find(mark);
    return at == std::string::npos ? "" : html.substr(at, html.find('>', at) - at);
  }

  test::ScratchFolder scratch_;
  const std::filesystem::path path_ = scratch_.path() / "report.html";
  double now_ = 500;    // s
  double reading_ = 0;  // that reading the clock takes
  std::vector<std::string> warnings_;
};

TEST_F(Report, SaysThatAStopCanBeResumedWhereThereIsSomethingToResume) {
  EndEvent end{RunEnd::kStopped};
  end.cause = "SIGTERM";
  ReportPage before = page(real_file_system());
  before.on_start(summary());
  before.on_end(end);
  EXPECT_THAT(text(), HasSubstr("stopped before the first step by SIGTERM"));
  EXPECT_THAT(text(), Not(HasSubstr("it can be resumed")));
  ReportPage after = page(real_file_system());
  after.on_start(summary());
  end.step = 7;
  after.on_end(end);
  EXPECT_THAT(text(), HasSubstr("stopped after step 7 of 60 by SIGTERM; it can be resumed"));
}

TEST_F(Report, IsWrittenEveryHalfMinute) {
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  now_ += 29;
  report.on_step({});
  EXPECT_EQ(text(), "");
  now_ += 1;
  scratch_.write("metrics.jsonl", "{\"attempt\":1,\"step\":7,\"loss\":0.5}\n");
  report.on_step({});
  EXPECT_THAT(text(), ContainsRegex("goes on: step 7 of 60; written 20..-..-.. ..:..:.. .UTC.<"));
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

// A time beyond every calendar; a disk that is gone for a moment ends in the same place.
TEST_F(Report, ThatCannotBeMadeWarnsOnceAndEndsNoRun) {
  scratch_.write("run.json", R"({"attempts": [{"attempt": 1, "started": 1e17}]})");
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  now_ += 30;
  report.on_step({});
  report.on_end({RunEnd::kDone, 60, 60});
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("the run itself is as it should be"));
}

TEST_F(Report, AClockThatWasSetBackCostsNothing) {
  scratch_.write("run.json", R"({"attempts": [{"attempt": 1, "started": 8000, "ended": 4400, "cause": "SIGTERM"}]})");
  ReportPage report = page(real_file_system(), 3.0);
  report.on_start(summary());
  report.on_end({RunEnd::kStopped});
  EXPECT_THAT(text(), HasSubstr("<td>0.00</td><td>SIGTERM</td>"));
}

TEST_F(Report, ShowsPhotosThenBaseAndModelThenTheRest) {
  for (const char* name : {"me.png", "samples/step-00000000/00_seed-3.png", "samples/step-00000060/00_seed-3.png"}) {
    write_grey(name, 99);
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
  report.on_validation(validation(60));
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

TEST_F(Report, DoesNotShowTheModelOfAnEarlierEnd) {
  write_grey("comparison/base-00_seed-3.png", 10);
  write_grey("comparison/model-00_seed-3.png", 20);
  RunSummary resumed = summary();
  resumed.first_step = 60;
  resumed.total_steps = 80;
  {
    ReportPage report = page(real_file_system());  // which trains nothing, so that the model is still that one
    report.on_start(resumed);
    report.on_end({RunEnd::kDone, 60, 60});
    EXPECT_NE(image_of("model, seed 3"), "");
  }
  ReportPage report = page(real_file_system());
  report.on_start(resumed);
  now_ += 30;
  report.on_step({});
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "comparison"));
  EXPECT_NE(text(), "");
  EXPECT_EQ(image_of("model, seed 3"), "");
  report.on_end({RunEnd::kDone, 80, 80});  // no time for new ones
  EXPECT_EQ(image_of("model, seed 3"), "");
}

TEST_F(Report, WarnsOfAnEarlierModelsImagesThatStay) {
  write_grey("comparison/base-00_seed-3.png", 10);
  test::FaultyFileSystem full(test::Fault::kFailOnward, 0);
  ReportPage report = page(full);
  report.on_start(summary());
  report.on_step({});
  report.on_step({});
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("images of the model before this run"));
}

TEST_F(Report, ShowsAFileThatHasChangedAsItIs) {
  write_grey("samples/step-00000000/00_seed-3.png", 10);
  write_grey("samples/step-00000060/00_seed-3.png", 20);
  RunSummary resumed = summary();
  resumed.first_step = 60;
  ReportPage report = page(real_file_system());
  report.on_start(resumed);
  now_ += 30;
  report.on_step({});
  const std::string base = image_of("base, seed 3"), before = image_of("step 60, seed 3");
  write_grey("samples/step-00000060/00_seed-3.png", 200, 24);
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_NE(before, "");
  EXPECT_NE(image_of("step 60, seed 3"), before);
  EXPECT_EQ(image_of("base, seed 3"), base);
}

TEST_F(Report, ComparesNoImagesOfTwoPrompts) {
  const auto write_of = [this](const std::string& step, const std::string& prompt) {
    write_grey("samples/step-" + step + "/00_seed-3.png", 99);  // makes the folder
    model::write_png(real_file_system(), scratch_.path() / "samples" / ("step-" + step) / "00_seed-3.png",
                     Image{8, 8, std::vector<std::uint8_t>(192, 99)}, {{"prompt", prompt}});
  };
  RunSummary resumed = summary();
  resumed.first_step = 60;
  write_of("00000000", "a man");
  for (const char* prompt : {"a man", "a woman"}) {
    write_of("00000060", prompt);
    ReportPage report = page(real_file_system());
    report.on_start(resumed);
    report.on_end({RunEnd::kDone, 60, 60});
    EXPECT_EQ(image_of("base, seed 3").empty(), prompt == std::string("a woman")) << prompt;
  }
}

// Of an attempt that was resumed from a step before them, with other options perhaps.
TEST_F(Report, LeavesOutImagesOfStepsThatAreNotDoneYet) {
  for (const char* step : {"00000000", "00000040", "00000060", "00000080"}) {
    write_grey("samples/step-" + std::string(step) + "/00_seed-3.png", 99);
  }
  RunSummary resumed = summary();
  resumed.first_step = 40;
  ReportPage report = page(real_file_system());
  report.on_start(resumed);
  now_ += 30;
  report.on_step({});
  EXPECT_NE(image_of("step 40, seed 3"), "");
  EXPECT_THAT(text(), Not(HasSubstr("step 60")));
  EXPECT_THAT(text(), Not(HasSubstr("step 80")));
  report.on_validation(validation(60));
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_NE(image_of("step 60, seed 3"), "");
  EXPECT_THAT(text(), Not(HasSubstr("alt=\"step 80")));
}

// The file has them until this attempt validates for the first time.
TEST_F(Report, LeavesOutValidationsOfStepsThatAreNotDoneYet) {
  scratch_.write("validation.jsonl",
                 "{\"step\":0,\"loss\":0.5}\n{\"step\":40,\"loss\":0.25}\n{\"step\":60,\"loss\":9}\n");
  RunSummary resumed = summary();
  resumed.first_step = 40;
  ReportPage report = page(real_file_system());
  report.on_start(resumed);
  now_ += 30;
  report.on_step({});
  EXPECT_THAT(text(), HasSubstr("validation loss: lowest 0.25, highest 0.5, last 0.25"));
  report.on_validation(validation(60));
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_THAT(text(), HasSubstr("validation loss: lowest 0.25, highest 9, last 9"));
}

TEST_F(Report, SaysTheHighestMemoryOfAllAttempts) {
  scratch_.write("metrics.jsonl",
                 "{\"attempt\":1,\"step\":1,\"max_memory_bytes\":1073741824}\n"
                 "{\"attempt\":1,\"step\":2,\"max_memory_bytes\":4294967296}\n"
                 "{\"attempt\":2,\"step\":3,\"max_memory_bytes\":2147483648}\n");
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_THAT(text(), HasSubstr("<td>highest memory</td><td>4.00 GiB</td>"));
}

// A resumed run may have another prompt, of which there are no images yet; config.yaml quotes its own.
TEST_F(Report, SaysThePromptThatItsImagesHave) {
  for (const char* step : {"00000000", "00000040"}) {
    const std::string name = "samples/step-" + std::string(step) + "/00_seed-3.png";
    write_grey(name, 99);  // makes the folder
    model::write_png(real_file_system(), scratch_.path() / name, Image{8, 8, std::vector<std::uint8_t>(192, 99)},
                     {{"prompt", "a man: \"old\""}});
  }
  scratch_.write("config.yaml", "# Validation\nvalidation_prompt: \"a woman\"  # --validation-prompt\n");
  RunSummary resumed = summary();
  resumed.first_step = 40;
  ReportPage report = page(real_file_system());
  report.on_start(resumed);
  report.on_end({RunEnd::kDone, 60, 60});
  EXPECT_THAT(text(), HasSubstr("<p>a man: &quot;old&quot;</p>"));
  EXPECT_THAT(text(), Not(HasSubstr("<p>&quot;a woman&quot;</p>")));
}

TEST_F(Report, ShowsAllPairsThatWereGenerated) {
  for (std::int64_t i = 0; i < 16; ++i) {
    const std::string name = (i < 10 ? "0" : "") + std::to_string(i) + "_seed-" + std::to_string(i) + ".png";
    write_grey("comparison/base-" + name, 10);
    write_grey("comparison/model-" + name, 20);
  }
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  report.on_end({RunEnd::kDone, 60, 60});
  for (std::int64_t seed = 0; seed < 16; ++seed) {
    EXPECT_NE(image_of("base, seed " + std::to_string(seed)), "") << seed;
    EXPECT_NE(image_of("model, seed " + std::to_string(seed)), "") << seed;
  }
}

TEST_F(Report, HasWarningsThatComeAfterItsEnd) {
  ReportPage report = page(real_file_system());
  report.on_start(summary());
  report.on_end({RunEnd::kDone, 60, 60});
  report.on_warning({"report_to", "has not taken all", ""});
  EXPECT_THAT(text(), HasSubstr("has not taken all"));
}

// As in a run, where the page is told of every warning, its own too.
TEST_F(Report, ThatWarnsOfItselfDoesSoOnce) {
  test::FaultyFileSystem full(test::Fault::kFailOnward, 0);
  ReportPage* self = nullptr;
  std::vector<std::string> warnings;
  ReportPage report(
      full, std::nullopt,
      [&](const Problem& problem) {
        warnings.push_back(problem.line());
        self->on_warning(problem);
      },
      [] { return 0.0; });
  self = &report;
  report.on_start(summary());
  report.on_end({RunEnd::kFailed});
  report.on_warning({"report_to", "has not taken all", ""});
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(ReportData, HasTheNumbersOfEachStepOnce) {
  const test::ScratchFolder scratch;
  scratch.write("metrics.jsonl",
                "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":null}\n{\"step\":3,\"loss\":9,\"lr\":2}\nno line\n"
                "{\"step\":2,\"loss\":0.25}\n{\"step\":3,\"skipped\":true}\n");
  const StepColumns steps = read_report_data(scratch.path()).steps;
  EXPECT_EQ(steps.last_step, 3);
  EXPECT_EQ(steps.of("loss"), (StepNumbers{std::pair(1.0, 0.5), std::pair(2.0, 0.25)}));
  EXPECT_EQ(steps.of("lr"), (StepNumbers{std::pair(3.0, 2.0)}));
  EXPECT_TRUE(steps.of("skipped").empty());
}

TEST(ReportData, HasTheLikenessOfOneEvaluationOnly) {
  const test::ScratchFolder scratch;
  scratch.write("identity.jsonl",
                "{\"exam\":\"old\",\"step\":0,\"identity\":0.1}\n{\"exam\":\"old\",\"step\":20,\"identity\":0.9}\n"
                "{\"exam\":\"new\",\"step\":40,\"identity\":0.4}\n{\"exam\":\"new\",\"step\":60,\"identity\":0.5}\n"
                "{\"exam\":\"new\",\"step\":40,\"identity\":0.7}\n");
  const auto values = ReportData::values(read_report_data(scratch.path()).identity, "identity");
  EXPECT_EQ(values, (std::map<std::int64_t, double>{{40, 0.4}, {60, 0.5}}));
}

}  // namespace
}  // namespace sdtune::train
