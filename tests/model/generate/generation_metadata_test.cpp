#include "model/generate/generation_metadata.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/generate/a1111_parameters.h"

namespace sdtune::model {
namespace {

// As the program of commit 68da9cb wrote it.
constexpr const char* kOldMetadata = R"({"version": "0.1.0",
    "model": {"path": "runs/me", "name": "me", "fingerprint": "abc"},
    "options": {"prompt": "a cat", "negative_prompt": null, "prompt_syntax": "weighted", "clip_skip": 0, "steps": 12,
      "guidance_scale": 7.5, "guidance_rescale": 0.0, "eta": 0.0, "seed": 6, "sampler": "euler", "width": null,
      "height": 64, "init_image": "", "strength": 0.8, "hires_scale": 1.0, "hires_steps": null, "hires_strength": 0.7,
      "ai_mark": true, "vae": "", "embedding": [], "lora": [], "vae_tiling": false, "vae_slicing": true,
      "device": "cpu", "dtype": "float32"},
    "files": {}, "batch": {"first_seed": 5, "count": 3}})";

TEST(GenerationMetadata, OpensWhatEarlierVersionsWrote) {
  GenerateOptions options;
  options.seed = 99;
  const AppliedMetadata applied = apply_metadata(parse_json(kOldMetadata, "old"), "old", {}, options);
  EXPECT_TRUE(applied.warnings.empty());
  EXPECT_EQ(applied.model, "runs/me");
  EXPECT_EQ(applied.batch.first_seed, 5);
  EXPECT_EQ(applied.batch.count, 3);
  EXPECT_EQ(options.prompt, "a cat");
  EXPECT_EQ(options.steps, 12);
  EXPECT_EQ(options.guidance_scale, 7.5);
  EXPECT_EQ(options.height, 64);
  EXPECT_FALSE(options.width);
  EXPECT_EQ(options.seed, 6);
}

TEST(GenerationMetadata, ComesBackAsItWasWritten) {
  GenerateOptions options;
  options.prompt = "a dog";
  options.guidance_scale = 5.0;
  options.num_images = 4;
  const Json metadata = generation_metadata(options, {"", "portrait-64", "abc", {}}, {0, 1});
  EXPECT_FALSE(metadata["options"].contains("num_images"));
  GenerateOptions read;
  apply_metadata(metadata, "new", {}, read);
  EXPECT_EQ(read.prompt, "a dog");
  EXPECT_EQ(read.guidance_scale, 5.0);
  EXPECT_EQ(read.num_images, 1);
}

// The whole batch is generated again, so a small file could ask for any number of images.
TEST(GenerationMetadata, RefusesABatchThatNoCommandMakes) {
  const auto apply = [](std::int64_t first_seed, std::int64_t count) {
    Json metadata = parse_json(kOldMetadata, "old");
    metadata["batch"] = {{"first_seed", first_seed}, {"count", count}};
    GenerateOptions options;
    apply_metadata(metadata, "old", {}, options);
  };
  apply(6, 1024);
  for (const auto& [first_seed, count] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {6, 1025}, {0, 1'000'000'000'000}, {7, 1}, {5, 1}, {6, 0}, {-1, 100}, {INT64_MIN, INT64_MAX}}) {
    EXPECT_THROW(apply(first_seed, count), ConfigError) << first_seed << " " << count;
  }
}

// Without a path it is an image of a bundled base: until portrait-128 became what is taken without --model, of
// portrait-64.
TEST(GenerationMetadata, FindsTheBundledBaseByItsName) {
  GenerateOptions options;
  for (const std::string name : {"portrait-64", "portrait-128"}) {
    const Json metadata = generation_metadata(options, {"", name, "abc", {}}, {0, 1});
    EXPECT_EQ(apply_metadata(metadata, "old", {}, options).model, find_bundled_base(name));
    const ImageSources sources = read_sources(find_bundled_base(name), "", options);
    EXPECT_EQ(sources.model, "");
    EXPECT_EQ(sources.model_name, name);
  }
}

TEST(A1111Parameters, AreWrittenAsTheWebInterfaceReadsThem) {
  GenerateOptions options;
  options.prompt = "a cat";
  options.guidance_scale = 7.5;
  options.loras = {{"loras/me.safetensors", 0.7}};
  const ImageSources sources{"",
                             "sd15",
                             "0123456789abcdef",
                             {{"loras/me.safetensors:0.7", "0000000000000000"}},
                             {{"loras/me.safetensors:0.7", "fedcba9876543210"}}};
  const std::string text = a1111_parameters(options, sources, {{64, 48}, "PNDMScheduler"});
  EXPECT_TRUE(
      text.starts_with("a cat <lora:me:0.7>\nSteps: 30, Sampler: PLMS, CFG scale: 7.5, Seed: 0, Size: 48x64, "
                       "Model hash: 0123456789, Model: sd15, Lora hashes: \"me: fedcba987654\", Version: "))
      << text;
  const ModelSampling karras{{64, 48}, "DPMSolverMultistepScheduler", {{"use_karras_sigmas", true}}};
  EXPECT_NE(a1111_parameters(options, sources, karras).find("Sampler: DPM++ 2M, Schedule type: Karras, CFG scale"),
            std::string::npos);
}

}  // namespace
}  // namespace sdtune::model
