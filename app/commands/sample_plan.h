// From the words of `sdtune sample` to the list of images to generate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/cli/arguments.h"
#include "app/commands/sample_options.h"
#include "model/generate/generation_metadata.h"

namespace sdtune::app {

// The images of one prompt: num_images of them from its seed on.
struct PromptJob {
  model::GenerateOptions options;
  std::int64_t batch = 1;                 // images generated at once
  std::optional<std::int64_t> only_seed;  // of --like: the others of its batch are generated and not written
};

struct SamplePlan {
  std::vector<PromptJob> jobs;
  std::optional<model::AppliedMetadata> like;  // of --like
};

// Sets `options` from the words, the YAML file and the image of --like (in this order of precedence) and lists the
// prompts with what each line of a prompt file says. Throws all that is wrong at once.
SamplePlan make_sample_plan(const Arguments& arguments, SampleOptions& options);

}  // namespace sdtune::app
