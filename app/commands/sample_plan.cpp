#include "app/commands/sample_plan.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "app/commands/command_options.h"
#include "app/commands/lora_tags.h"
#include "app/commands/picture_text.h"
#include "app/commands/prompt_flags.h"
#include "app/commands/prompt_list.h"
#include "model/base/file_system.h"
#include "model/image/png_text.h"

namespace sdtune::app {
namespace {

constexpr std::size_t kMaxPictureBytes = std::size_t{1} << 28;

AppliedRecord read_like(const train::Origins& given, SampleOptions& options) {
  const std::string where = "--like: " + options.like;
  const std::string bytes = read_file(options.like, kMaxPictureBytes);
  if (const std::optional<std::string> record = model::find_png_text(bytes, kRecordKey)) {
    return apply_record(parse_json(*record, where), where, given, options);
  }
  if (const std::optional<std::string> text = model::find_png_text(bytes, "parameters")) {
    return apply_parameters(*text, where, given, options);
  }
  throw ConfigError(where, "has no text that says how it was drawn",
                    "give a PNG file as sdtune or a web interface wrote it; copies may have lost their texts");
}

// Options that change nothing without another one, or not with it.
void check_use(const train::Origins& origins, const SampleOptions& options, std::vector<Problem>& problems) {
  const auto needs = [&](const char* name, const char* other, bool there) {
    if (origins.count(name) > 0 && !there) problems.push_back({flag_name(name), std::string("needs ") + other, ""});
  };
  needs("strength", "--init-image", !options.init_image.empty());
  needs("hires_steps", "--hires-scale", options.hires_scale > 1);
  needs("hires_strength", "--hires-scale", options.hires_scale > 1);
  const bool one = origins.count("prompt") > 0, many = origins.count("prompts") > 0;
  if (!one && !many && options.like.empty()) {
    problems.push_back({"--prompt", "is not given", "say what to draw: --prompt \"a photo of sks person\""});
  }
  if (one && many) problems.push_back({"--prompts", "does not go with --prompt", "leave one out"});
  if (many && !options.like.empty()) problems.push_back({"--prompts", "does not go with --like", "leave one out"});
}

void check_grid(const SampleOptions& options, std::vector<Problem>& problems) {
  for (const auto& [name, value] : {std::pair{"--compare", &options.compare}, {"--references", &options.references}}) {
    if (!value->empty() && options.grid.empty()) {
      problems.push_back({name, "needs --grid", "say where all pictures go: --grid sheet.png"});
    }
  }
  if (!options.grid.empty() && std::filesystem::path(options.grid).extension() != ".png") {
    problems.push_back({"--grid", "does not end with .png (got " + options.grid + ")", ""});
  }
}

// The picture's whole batch, so that it comes out the same to the last bit.
PromptJob job_of_record(const SampleOptions& options, const DrawnBatch& batch) {
  PromptJob job{options, options.seed};
  job.options.seed = batch.first_seed;
  job.options.num_images = job.options.batch = batch.count;
  return job;
}

}  // namespace

SamplePlan make_sample_plan(const Arguments& arguments, SampleOptions& options) {
  const GivenOptions given = apply_options(options.fields(), arguments, options.config,
                                           "put a prompt of several words in quotes: --prompt \"...\"");
  std::vector<Problem> problems = given.problems;
  SamplePlan plan;
  if (problems.empty() && !options.like.empty()) plan.record = read_like(given.origins, options);
  check_use(given.origins, options, problems);
  check_grid(options, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  if (!options.prompts.empty()) {
    for (const PromptLine& line : read_prompt_lines(options.prompts)) {
      plan.jobs.push_back({options_of_line(options, line.text, line.where), std::nullopt});
    }
  } else if (plan.record && given.origins.count("num_images") == 0) {
    plan.jobs.push_back(job_of_record(options, plan.record->batch));
  } else {
    plan.jobs.push_back({options, std::nullopt});
  }
  const bool one = options.prompts.empty();
  for (PromptJob& job : plan.jobs) {
    resolve_loras(job.options, one ? "--prompt" : "--prompts: " + job.options.prompt, problems);
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return plan;
}

}  // namespace sdtune::app
