#include "app/ui/progress_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace sdtune::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A bar that writes into memory under a clock that the test moves.
class Progress : public ::testing::Test {
 protected:
  ~Progress() override {
    std::fclose(stream_);
    std::free(buffer_);
  }

  ProgressBar bar(bool terminal, int columns) {
    return ProgressBar(ProgressLine(stream_, terminal, columns, [this] { return now_; }));
  }
  std::string written() {
    std::fflush(stream_);
    return std::string(buffer_, size_);
  }
  train::StepEvent step(std::int64_t number) const {
    train::StepEvent event;
    event.step = number;
    event.total_steps = 100;
    event.loss = 0.125;
    event.lr = 2e-6;
    event.images_per_s = 3.5;
    event.elapsed = static_cast<double>(number) * 2;
    return event;
  }

  char* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_ = open_memstream(&buffer_, &size_);
  double now_ = 0;
};

TEST_F(Progress, LogGetsOnePlainLineEach30Seconds) {
  ProgressBar progress = bar(false, 80);
  for (int number = 1; number <= 100; ++number) {
    now_ += 1;
    progress.on_step(step(number));
  }
  const std::string text = written();
  // At 1 s, 31 s, 61 s, 91 s, and the last step, which is always told.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, StartsWith("step 1/100  loss 0.125  lr 2e-06  3.5 photos/s  ETA 03:18\n"));
  EXPECT_THAT(text, HasSubstr("\nstep 100/100  loss"));
  for (const char c : text) EXPECT_TRUE(c == '\n' || c >= ' ') << "control character " << int{c};
}

TEST_F(Progress, TerminalGetsABarThatFits) {
  for (const int columns : {20, 40, 60, 80, 100, 300}) {
    ProgressBar progress = bar(true, columns);
    now_ += 1;
    progress.on_step(step(50));
    const std::string text = written();
    const std::string last = text.substr(text.rfind('\r') + 1);
    EXPECT_LT(static_cast<int>(last.size()), columns);
    EXPECT_THAT(last, StartsWith("step 50/100"));
    if (columns >= 80) {
      EXPECT_THAT(last, HasSubstr("[===="));
    }
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "no colours, so NO_COLOR needs nothing";
  }
}

TEST_F(Progress, TerminalIsWrittenAtMostTenTimesASecond) {
  ProgressBar progress = bar(true, 80);
  now_ = 1;
  for (int number = 1; number <= 99; ++number) {
    now_ += 0.01;
    progress.on_step(step(number));
  }
  const std::string text = written();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 11);
}

TEST_F(Progress, MessagesStayAboveTheBar) {
  ProgressBar progress = bar(true, 80);
  now_ = 1;
  progress.on_step(step(1));
  progress.on_warning({"photo.jpg", "is small", ""});
  progress.on_end({train::RunEnd::kStopped, 1, 0, {}, 3661});
  EXPECT_THAT(written(), HasSubstr("\rsdtune: warning: photo.jpg: is small\n\rstep 1/100"));
  EXPECT_THAT(written(),
              HasSubstr("\nstopped after step 1, 1:01:01; state saved, --resume-from-checkpoint latest resumes\n"));
}

TEST_F(Progress, AStopBeforeTheFirstStepSaysWhetherStateWasSaved) {
  ProgressBar progress = bar(false, 80);
  train::EndEvent end{train::RunEnd::kStopped};
  end.cause = "SIGTERM";
  progress.on_end(end);
  end.checkpoint = "run/checkpoints/step-00000000";
  progress.on_end(end);
  EXPECT_EQ(written(),
            "stopped before the first step by SIGTERM; start it again\n"
            "stopped after step 0, 00:00 by SIGTERM; state saved, --resume-from-checkpoint latest resumes\n");
}

TEST_F(Progress, AFailureSaysHowFarTheRunCame) {
  ProgressBar progress = bar(false, 80);
  progress.on_end({train::RunEnd::kFailed, 5000, 0, {}, 3661});
  progress.on_end({train::RunEnd::kFailed});
  EXPECT_EQ(written(), "failed after step 5000, 1:01:01\nfailed before the first step\n");
}

TEST_F(Progress, AnEvaluationSaysItsFiguresAndTheEndWhoseWeightsTheModelHolds) {
  ProgressBar progress = bar(false, 80);
  progress.on_identity({50, 0.876, 0.9, 0.75, 0.125, 1.5, true});
  progress.on_end({train::RunEnd::kDone, 100, 50, "run/model", 5});
  EXPECT_THAT(written(), HasSubstr("likeness 0.88, prompt fidelity 75 %, leakage 12 % after step 50 (best so far)\n"));
  EXPECT_THAT(written(),
              HasSubstr("done after step 100, 00:05; the model is that of step 50, the best identity evaluation\n"));
}

TEST_F(Progress, PhasesOfUnknownLengthAreJustNamed) {
  ProgressBar progress = bar(false, 80);
  progress.on_phase("reading photos", 0, 0);
  progress.on_phase("generating class images", 0, 8);
  EXPECT_EQ(written(), "reading photos\ngenerating class images 0/8\n");
}

TEST_F(Progress, SummarySaysWhatWillBeDone) {
  ProgressBar progress = bar(false, 80);
  train::RunSummary summary;
  summary.base = "models/tiny";
  summary.pipeline_class = "StableDiffusionPipeline";
  summary.components = {"unet", "text_encoder"};
  summary.method = "full";
  summary.trainable_parameters = 859520964;
  summary.total_parameters = 1066235307;
  summary.device = "cpu";
  summary.device_name = "cpu (Some Processor, 2 threads)";
  summary.dtype = "float32";
  summary.images = 5;
  summary.left_out = 2;
  summary.class_images = 64;
  summary.resolution = 512;
  summary.batch = 4;
  summary.ranks = 2;
  summary.total_steps = 300;
  summary.first_step = 100;
  summary.notes = {"random crop: the latent cache is off"};
  progress.on_start(summary);
  const std::string text = written();
  for (const char* said :
       {"models/tiny (StableDiffusionPipeline)", "unet, text_encoder (full): 859.5 M of 1.07 G",
        "device   cpu (Some Processor, 2 threads), float32", "5 of 512 px, 2 files left out, and 64 class images",
        "300, batch 4 on 2 ranks, resumed after step 100", "seed     0", "random crop: the latent cache is off"}) {
    EXPECT_THAT(text, HasSubstr(said));
  }
}

TEST_F(Progress, NamesOfFoldersCommandNoTerminal) {
  ProgressBar progress = bar(true, 80);
  train::RunSummary summary;
  summary.base = "models/\x1b[2J";
  summary.notes = {"one epoch is 2 photos of 1_\x1b]0;owned\x07"};
  progress.on_start(summary);
  EXPECT_THAT(written(), HasSubstr("model    models/\\x1b[2J ("));
  EXPECT_THAT(written(), HasSubstr("note     one epoch is 2 photos of 1_\\x1b]0;owned\\x07\n"));
}

TEST_F(Progress, TheEstimateIsALineOfItsOwn) {
  ProgressBar progress = bar(false, 80);
  progress.on_estimate({.steps_left = 297, .seconds_per_step = 0.25});
  EXPECT_EQ(written(), "time     about 01:14 for the 297 steps left (0.25 s each, without checkpoints and images)\n");
}

TEST(DurationText, IsReadable) {
  EXPECT_EQ(duration_text(0), "00:00");
  EXPECT_EQ(duration_text(59.6), "01:00");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(1e300), "?");
  EXPECT_EQ(duration_text(-1), "?");
}

TEST_F(Progress, SaysBeforehandWhatAPresetSetAndWhatIsGenerated) {
  ProgressBar progress = bar(false, 80);
  progress.on_preparation({"lora_sd15.yaml: num_class_images 200", {"200 class images of 50 steps, before training"}});
  progress.on_generation({200, 750});
  EXPECT_EQ(written(),
            "preset   lora_sd15.yaml: num_class_images 200\n"
            "generate 200 class images of 50 steps, before training\n"
            "time     about 12:30 for 200 class images (3.75 s each)\n");
}

}  // namespace
}  // namespace sdtune::app
