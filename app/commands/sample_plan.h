// From the words of `sdtune sample` to the list of what is drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/cli/arguments.h"
#include "app/commands/picture_record.h"
#include "app/commands/sample_options.h"

namespace sdtune::app {

// The pictures of one prompt: num_images of them from its seed on.
struct PromptJob {
  SampleOptions options;
  std::optional<std::int64_t> only_seed;  // of --like: the others of its batch are drawn and not written
};

struct SamplePlan {
  std::vector<PromptJob> jobs;
  std::optional<AppliedRecord> record;  // of --like
};

// Sets `options` from the words, the YAML file and the picture of --like (in this order of precedence) and lists the
// prompts with what each line of a prompt file says. Throws all that is wrong at once.
SamplePlan make_sample_plan(const Arguments& arguments, SampleOptions& options);

}  // namespace sdtune::app
