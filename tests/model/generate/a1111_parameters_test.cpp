// Files of the web interface itself are read in tests/python/test_sampling_files.py; here are texts that it seldom
// writes.
#include "model/generate/a1111_parameters.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "model/base/error.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

AppliedMetadata apply(const std::string& text, GenerateOptions& options, const Origins& given = {}) {
  return apply_a1111_parameters(text, "a.png", given, options);
}

TEST(A1111ParametersText, ComesBackAsItWasWritten) {
  GenerateOptions written;
  written.prompt = "a cat, \"so: 3\"\nSteps: are taken";
  written.negative_prompt = "blur, Seed: 5";
  written.guidance_scale = 3.25;
  written.sampler = "dpm++2m_karras";
  written.steps = 12;
  written.seed = 7;
  written.clip_skip = 1;
  written.hires_scale = 1.5;
  written.hires_steps = 4;
  written.hires_strength = 0.6;
  const std::string text =
      a1111_parameters(written, {"", "me, of: \"May\"", "0123456789abcdef", {}}, {{48, 64}, "DDIMScheduler"});
  GenerateOptions read;
  apply(text, read);
  EXPECT_EQ(read.prompt, written.prompt);
  EXPECT_EQ(read.negative_prompt, written.negative_prompt);
  EXPECT_EQ(read.guidance_scale, 3.25);
  EXPECT_EQ(read.sampler, "dpm++2m_karras");
  EXPECT_EQ(read.steps, 12);
  EXPECT_EQ(read.seed, 7);
  EXPECT_EQ(read.clip_skip, 1);
  EXPECT_EQ(read.width, 64);
  EXPECT_EQ(read.height, 48);
  EXPECT_EQ(read.hires_scale, 1.5);
  EXPECT_EQ(read.hires_steps, 4);
  EXPECT_EQ(read.hires_strength, 0.6);
}

TEST(A1111ParametersText, StepsOfTheSecondPassAreThoseThatRun) {
  const std::string text = "a cat\nSteps: 30, Denoising strength: 0.5, Hires upscale: 2, Hires upscaler: Latent";
  GenerateOptions all, some, odd;
  model::apply(text, all);
  EXPECT_EQ(all.hires_steps, 60);
  model::apply(text + ", Hires steps: 20", some);
  EXPECT_EQ(some.hires_steps, 40);
  apply("a cat\nSteps: 30, Denoising strength: 0.35, Hires upscale: 2, Hires steps: 7", odd);
  EXPECT_EQ(static_cast<int>(static_cast<double>(*odd.hires_steps) * 0.35), 7);
  odd.guidance_scale = 7;
  const std::string again = a1111_parameters(odd, {"", "me", "0123456789abcdef", {}}, {{48, 64}, "DDIMScheduler"});
  EXPECT_NE(again.find("Hires steps: 7,"), std::string::npos) << again;
}

// Added one by one they would never be enough: a double of that size does not change by one.
TEST(A1111ParametersText, AbsurdStepsOfTheSecondPassAreRefused) {
  for (const auto& [share, steps, got] :
       {std::array{"0.3", "9000000000000000000", "9000000000000000000"}, std::array{"1e-300", "7", "1000000"}}) {
    GenerateOptions options;
    const std::string text = std::string("a\nSteps: 3, Hires upscale: 2, Denoising strength: ") + share;
    try {
      model::apply(text + ", Hires steps: " + steps, options);
      FAIL() << "was accepted: " << steps;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("out of range (got " + std::string(got) + ";"), std::string::npos)
          << error.what();
    }
  }
}

TEST(A1111ParametersText, MayHaveNoPrompt) {
  for (const std::string before : {"", "\n"}) {
    GenerateOptions options;
    options.prompt = "a cat";
    model::apply(before + "Negative prompt: blurry\nSteps: 20, Seed: 3", options);
    EXPECT_EQ(options.prompt, "");
    EXPECT_EQ(options.negative_prompt, "blurry");
    EXPECT_EQ(options.steps, 20);
  }
}

TEST(A1111ParametersText, ReplacesNamesThatAreNoUtf8) {
  GenerateOptions options;
  options.guidance_scale = 7;
  const std::string text =
      a1111_parameters(options, {"", "caf\xE9, of May", "0123456789abcdef", {}}, {{48, 64}, "DDIMScheduler"});
  EXPECT_NE(text.find("Model: \"caf\xEF\xBF\xBD, of May\""), std::string::npos) << text;
}

TEST(A1111ClipSkip, MeansWhatA1111MadeOfItWithTheModel) {
  const test::ScratchFolder scratch;
  const ModelBundle sd1 = test::make_tiny_bundle(scratch, false), sdxl = test::make_tiny_bundle(scratch, true);
  ModelBundle sd2 = test::make_tiny_bundle(scratch, false);
  sd2.unet = UNet2DConditionModel(UNetConfig::from_json(test::tiny_unet_config(1024), "unet"));
  const std::int64_t of_sd1[] = {0, 0, 1, 2, 3}, of_sdxl[] = {0, 0, 0, 1, 2};
  for (std::int64_t theirs = 0; theirs < 5; ++theirs) {
    EXPECT_EQ(clip_skip_of_a1111(theirs, sd1), of_sd1[theirs]) << theirs;
    EXPECT_EQ(clip_skip_of_a1111(theirs, sdxl), of_sdxl[theirs]) << theirs;
    EXPECT_EQ(clip_skip_of_a1111(theirs, sd2), 0) << theirs;
  }
}

TEST(A1111ClipSkip, IsWrittenAsA1111Reads) {
  GenerateOptions options;
  options.guidance_scale = 7;
  const ImageSources sources{"", "me", "0123456789abcdef", {}};
  const auto written = [&](std::int64_t clip_skip, bool is_xl) {
    options.clip_skip = clip_skip;
    const std::string text = a1111_parameters(options, sources, {{48, 64}, "DDIMScheduler", Json::object(), is_xl});
    const std::size_t at = text.find("Clip skip: ");
    return at == std::string::npos ? std::string() : text.substr(at, std::string("Clip skip: 0").size());
  };
  EXPECT_EQ(written(0, false), "");
  EXPECT_EQ(written(0, true), "");
  EXPECT_EQ(written(1, false), "Clip skip: 2");
  EXPECT_EQ(written(1, true), "Clip skip: 3");
}

TEST(A1111ClipSkip, IsKeptForTheModelUnlessItIsGiven) {
  GenerateOptions options;
  EXPECT_EQ(model::apply("a cat\nSteps: 9, Clip skip: 2", options).a1111_clip_skip, 2);
  EXPECT_FALSE(model::apply("a cat\nSteps: 9", options).a1111_clip_skip);
  options.clip_skip = 3;
  const Origins given = {{"clip_skip", "--clip-skip"}};
  EXPECT_FALSE(model::apply("a cat\nSteps: 9, Clip skip: 2", options, given).a1111_clip_skip);
  EXPECT_EQ(options.clip_skip, 3);
}

TEST(A1111ParametersText, OfAnotherKindIsRefused) {
  GenerateOptions options;
  for (const char* text : {"", "a cat", "Steps", "a cat\nSeed: 3"})
    EXPECT_THROW(apply(text, options), ConfigError) << text;
}

TEST(A1111ParametersText, LeavesWhatIsGiven) {
  GenerateOptions options;
  options.seed = 99;
  apply("a cat\nSteps: 9, Seed: 3", options, {{"seed", "--seed"}});
  EXPECT_EQ(options.seed, 99);
  EXPECT_EQ(options.steps, 9);
}

TEST(A1111ParametersText, NamesWhatHasNoCounterpart) {
  GenerateOptions options;
  const AppliedMetadata applied =
      apply("a cat\nSteps: 9, Sampler: Restart, ADetailer model: face, Size: 64x48", options);
  std::string all;
  for (const Problem& warning : applied.warnings) all += warning.line() + "\n";
  EXPECT_NE(all.find("Restart"), std::string::npos) << all;
  EXPECT_NE(all.find("ADetailer model"), std::string::npos) << all;
  EXPECT_EQ(all.find("Size"), std::string::npos) << all;
  EXPECT_FALSE(options.sampler);
}

}  // namespace
}  // namespace sdtune::model
