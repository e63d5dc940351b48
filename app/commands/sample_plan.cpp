#include "app/commands/sample_plan.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "app/cli/given_options.h"
#include "app/commands/written_paths.h"
#include "model/files/file_system.h"
#include "model/generate/a1111_parameters.h"
#include "model/generate/lora_tags.h"
#include "model/generate/prompt_flags.h"
#include "model/generate/prompt_list.h"
#include "model/image/png_text.h"

namespace sdtune::app {
namespace {

constexpr std::size_t kMaxImageBytes = std::size_t{1} << 28;

model::AppliedMetadata read_like(const Origins& given, SampleOptions& options) {
  const std::string where = "--like: " + options.like;
  const std::string bytes = read_file(options.like, kMaxImageBytes);
  const std::optional<std::string> own = model::find_png_text(bytes, model::kMetadataKey);
  if (own) return model::apply_metadata(parse_json(*own, where), where, given, options.image);
  const std::optional<std::string> a1111 = model::find_png_text(bytes, "parameters");
  if (a1111) return model::apply_a1111_parameters(*a1111, where, given, options.image);
  throw ConfigError(where, "has no generation metadata",
                    "give a PNG file as sdtune or a web interface wrote it; copies may have lost their metadata");
}

// Options that change nothing without another one, or not with it.
void check_use(const Origins& origins, const SampleOptions& options, std::vector<Problem>& problems) {
  const auto needs = [&](const char* name, const char* other, bool there) {
    if (origins.count(name) > 0 && !there) problems.push_back({flag_name(name), std::string("needs ") + other, ""});
  };
  needs("strength", "--init-image", !options.image.init_image.empty());
  needs("hires_steps", "--hires-scale", options.image.hires_scale > 1);
  needs("hires_strength", "--hires-scale", options.image.hires_scale > 1);
  const bool one = origins.count("prompt") > 0, many = origins.count("prompts") > 0;
  if (!one && !many && options.like.empty()) {
    problems.push_back({"--prompt", "is not given", "describe the image: --prompt \"a photo of sks person\""});
  }
  if (one && many) problems.push_back({"--prompts", "does not go with --prompt", "leave one out"});
  if (many && !options.like.empty()) problems.push_back({"--prompts", "does not go with --like", "leave one out"});
}

void check_grid(const SampleOptions& options, std::vector<Problem>& problems) {
  for (const auto& [name, value] : {std::pair{"--compare", &options.compare}, {"--references", &options.references}}) {
    if (!value->empty() && options.grid.empty()) {
      problems.push_back({name, "needs --grid", "say where the grid goes: --grid sheet.png"});
    }
  }
  check_image_file("grid", options.grid, problems);
}

// The image's whole batch, so that it comes out the same to the last bit.
PromptJob job_of_batch(const model::GenerateOptions& options, const model::ImageBatch& batch) {
  PromptJob job{options, batch.count, options.seed};
  job.options.seed = batch.first_seed;
  job.options.num_images = batch.count;
  return job;
}

std::vector<PromptJob> list_jobs(const SampleOptions& options, const std::optional<model::AppliedMetadata>& like,
                                 bool counts_images) {
  if (!options.prompts.empty()) {
    std::vector<PromptJob> jobs;
    for (const model::PromptLine& line : model::read_prompt_lines(options.prompts, "--prompts")) {
      jobs.push_back({model::options_of_line(options.image, line.text, line.where), options.batch, std::nullopt});
    }
    return jobs;
  }
  if (like && !counts_images) return {job_of_batch(options.image, like->batch)};
  return {{options.image, options.batch, std::nullopt}};
}

// The LoRAs that the prompts call. A prompt of another program calls what its user has: where that is missing here, the
// tag is left out with a warning, as the rest of its text that has no counterpart.
void resolve_tags(const Origins& origins, const SampleOptions& options, SamplePlan& plan,
                  std::vector<Problem>& problems) {
  const bool is_foreign = plan.like && !plan.like->model && origins.count("prompt") == 0;
  const bool one = options.prompts.empty();
  for (PromptJob& job : plan.jobs) {
    if (is_foreign) {
      model::resolve_lora_tags(job.options, options.lora_dir, "--like: " + options.like, plan.like->warnings);
      continue;
    }
    const std::string where = one ? "--prompt" : "--prompts: " + job.options.prompt;
    model::resolve_lora_tags(job.options, options.lora_dir, where, problems);
  }
}

}  // namespace

SamplePlan make_sample_plan(const Arguments& arguments, SampleOptions& options) {
  const GivenOptions given = apply_options(options.fields(), arguments, options.config,
                                           "put a prompt of several words in quotes: --prompt \"...\"");
  std::vector<Problem> problems = given.problems;
  SamplePlan plan;
  if (problems.empty() && !options.like.empty()) {
    plan.like = read_like(given.origins, options);
    if (plan.like->model && given.origins.count("model") == 0) options.model = *plan.like->model;
  }
  check_use(given.origins, options, problems);
  check_grid(options, problems);
  check_output_folder(options.output, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  options.image.loras = model::parse_lora_list(options.image.lora, "--lora", problems);
  plan.jobs = list_jobs(options, plan.like, given.origins.count("num_images") > 0);
  resolve_tags(given.origins, options, plan, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return plan;
}

}  // namespace sdtune::app
