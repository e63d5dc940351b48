#include "model/generate/a1111_parameters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "model/base/json.h"
#include "model/generate/a1111_samplers.h"
#include "model/generate/lora_tags.h"
#include "model/generate/model_additions.h"
#include "model/single_file/model_spec.h"

namespace sdtune::model {
namespace {

constexpr std::string_view kNegative = "Negative prompt: ";
constexpr std::size_t kModelHash = 10;  // hexadecimal digits, as A1111 shows
constexpr std::size_t kFileHash = 12;
constexpr std::int64_t kLastLayer = 1;  // as A1111 counts "Clip skip"
constexpr std::int64_t kPenultimateLayer = 2;

using Entries = std::vector<std::pair<std::string, std::string>>;

// A value that holds a separator is written as a JSON text.
std::string quoted(const std::string& value) {
  return value.find_first_of(",:\n\"") == std::string::npos ? value : Json(valid_text(value)).dump();
}

// "name: hash, name: hash", of pairs of a name and the text that `hashes` has the file's hash under.
std::string hashes_text(const Entries& names, const std::map<std::string, std::string>& hashes) {
  std::vector<std::string> texts;
  for (const auto& [name, file] : names) texts.push_back(name + ": " + hashes.at(file).substr(0, kFileHash));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Entries lora_names(const GenerateOptions& options) {
  Entries names;
  for (const WeightedLora& lora : options.loras) names.emplace_back(lora.file.stem().string(), lora_text(lora));
  return names;
}

Entries embedding_names(const GenerateOptions& options) {
  Entries names;
  for (const std::string& text : options.embedding) {
    const EmbeddingFile given = parse_embedding(text);
    names.emplace_back(given.token.empty() ? given.file.stem().string() : given.token, text);
  }
  return names;
}

std::string number(double value) {
  return Json(value).dump();
}

Entries entries_of(const GenerateOptions& options, const ImageSources& sources, const ModelSampling& sampling) {
  const bool hires = options.hires_scale > 1;
  Entries entries = {
      {"Steps", std::to_string(options.steps)},
      {"Sampler", options.sampler ? a1111_sampler_text(*options.sampler)
                                  : a1111_sampler_of_class(sampling.scheduler_class, sampling.scheduler_config)},
      {"CFG scale", number(options.guidance_scale.value())},
      {"Seed", std::to_string(options.seed)},
      {"Size", std::to_string(sampling.first_pass.width) + "x" + std::to_string(sampling.first_pass.height)},
      {"Model hash", sources.fingerprint.substr(0, kModelHash)},
      {"Model", quoted(sources.model_name)}};
  if (!options.vae.empty()) {
    entries.emplace_back("VAE hash", sources.files.at(options.vae).substr(0, kModelHash));
    entries.emplace_back("VAE", quoted(std::filesystem::path(options.vae).filename().string()));
  }
  if (!options.init_image.empty() || hires) {
    entries.emplace_back("Denoising strength", number(hires ? options.hires_strength : options.strength));
  }
  if (options.clip_skip > 0) {
    const std::int64_t first = sampling.is_xl ? kPenultimateLayer : kLastLayer;
    entries.emplace_back("Clip skip", std::to_string(options.clip_skip + first));
  }
  if (hires) {
    entries.emplace_back("Hires upscale", number(options.hires_scale));
    const auto planned = static_cast<double>(options.hires_steps.value_or(options.steps));
    entries.emplace_back("Hires steps", std::to_string(static_cast<std::int64_t>(planned * options.hires_strength)));
    entries.emplace_back("Hires upscaler", "Latent");
  }
  if (!options.loras.empty()) {
    entries.emplace_back("Lora hashes", quoted(hashes_text(lora_names(options), sources.loras)));
  }
  if (!options.embedding.empty()) {
    entries.emplace_back("TI hashes", quoted(hashes_text(embedding_names(options), sources.files)));
  }
  entries.emplace_back("Version", "sdtune " SDTUNE_VERSION);
  return entries;
}

// The last line's "Key: value" pairs; a value may be a JSON text.
Entries parse_entries(const std::string& line) {
  Entries entries;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t colon = line.find(": ", at);
    if (colon == std::string::npos) break;
    const std::string key = line.substr(at, colon - at);
    std::size_t end = colon + 2;
    const bool is_quoted = end < line.size() && line[end] == '"';
    if (is_quoted) {
      for (++end; end < line.size() && line[end] != '"'; ++end) end += line[end] == '\\' ? 1 : 0;
      end = std::min(end + 1, line.size());
    } else {
      end = std::min(line.find(", ", end), line.size());
    }
    const std::string value = line.substr(colon + 2, end - colon - 2);
    const Json unquoted = is_quoted ? Json::parse(value, nullptr, false) : Json();
    entries.emplace_back(key, unquoted.is_string() ? unquoted.get<std::string>() : value);
    at = end + (line.compare(end, 2, ", ") == 0 ? 2 : 1);
  }
  return entries;
}

// A1111 runs all steps of the second pass; here a share of them is run, as diffusers counts, which is the strength.
std::string planned_steps(const std::string& run_steps, const std::string& strength) {
  const auto run = static_cast<double>(std::atoll(run_steps.c_str()));
  double share = 0;  // not by atof, which a locale may have read "0.7" as 0
  std::from_chars(strength.data(), strength.data() + strength.size(), share);
  constexpr double kMost = 1e6;  // refused as a number of steps; a double does not count them one by one far above
  if (!(share > 0 && share <= 1) || run < 1 || run > kMost) return run_steps;
  if (run / share > kMost) return std::to_string(static_cast<std::int64_t>(kMost));
  double planned = std::ceil(run / share);
  while (std::floor(planned * share) < run) ++planned;
  return std::to_string(static_cast<std::int64_t>(planned));
}

class ParametersReader {
 public:
  ParametersReader(std::string where, const Origins& given, GenerateOptions& options)
      : where_(std::move(where)), given_(given), fields_(options.fields()) {}

  void set(const std::string& name, const std::string& value) {
    if (given_.count(name) == 0) set_field(*find_field(fields_, name), value, where_ + ": " + name);
  }

  void read(const Entries& entries) {
    const auto find = [&](const char* key) {
      for (const auto& [name, value] : entries) {
        if (name == key) return value;
      }
      return std::string();
    };
    const bool hires = !find("Hires upscale").empty();
    for (const auto& [key, value] : entries) {
      if (key == "Sampler") {
        set_sampler(value, find("Schedule type"));
      } else if (key == "Size") {
        set("width", value.substr(0, value.find('x')));
        set("height", value.substr(value.find('x') + 1));
      } else if (key == "Clip skip") {
        set_clip_skip(std::atoll(value.c_str()));
      } else if (key == "Denoising strength" && hires) {
        set("hires_strength", value);
        const std::string steps = find("Hires steps");  // none and 0: as many as of the first pass
        set("hires_steps", planned_steps(std::atoll(steps.c_str()) > 0 ? steps : find("Steps"), value));
      } else if (!set_by_name(key, value) && key != "Schedule type" && key != "Version") {
        leave_out(key, value);
      }
    }
  }

  std::vector<Problem> warnings() { return std::move(warnings_); }
  std::optional<std::int64_t> clip_skip() const { return clip_skip_; }

 private:
  void set_clip_skip(std::int64_t theirs) {
    if (given_.count("clip_skip") > 0) return;
    clip_skip_ = theirs;
    set("clip_skip", std::to_string(std::max(theirs, kLastLayer) - kLastLayer));
  }

  bool set_by_name(const std::string& key, const std::string& value) {
    static constexpr std::pair<const char*, const char*> kNames[] = {
        {"Steps", "steps"}, {"CFG scale", "guidance_scale"}, {"Seed", "seed"}, {"Hires upscale", "hires_scale"}};
    for (const auto& [theirs, ours] : kNames) {
      if (key != theirs) continue;
      set(ours, value);
      return true;
    }
    return key == "Hires steps" || (key == "Hires upscaler" && value == "Latent");
  }

  void set_sampler(const std::string& sampler, const std::string& schedule) {
    const std::optional<std::string> name = sampler_of_a1111(sampler, schedule);
    if (name) return set("sampler", *name);
    leave_out("Sampler", schedule.empty() ? sampler : sampler + ", " + schedule);
  }

  void leave_out(const std::string& key, const std::string& value) {
    warnings_.push_back({where_, "is not taken over: " + key + " (got " + value + ")", ""});
  }

  std::string where_;
  const Origins& given_;
  FieldList fields_;
  std::vector<Problem> warnings_;
  std::optional<std::int64_t> clip_skip_;
};

}  // namespace

std::string a1111_parameters(const GenerateOptions& options, const ImageSources& sources,
                             const ModelSampling& sampling) {
  std::ostringstream text;
  const std::string loras = lora_tags_text(options.loras);
  text << options.prompt << (options.prompt.empty() || loras.empty() ? "" : " ") << loras << '\n';
  if (options.negative_prompt && !options.negative_prompt->empty())
    text << kNegative << *options.negative_prompt << '\n';
  std::vector<std::string> settings;
  for (const auto& [key, value] : entries_of(options, sources, sampling)) settings.push_back(key + ": " + value);
  text << fmt::format("{}", fmt::join(settings, ", "));
  return text.str();
}

AppliedMetadata apply_a1111_parameters(const std::string& text, const std::string& where, const Origins& given,
                                       GenerateOptions& options) {
  const std::size_t steps = text.starts_with("Steps: ") ? 0 : text.rfind("\nSteps: ");
  if (steps == std::string::npos) {
    throw ConfigError(where, "has no generation metadata", "other programs drop metadata when they save a copy");
  }
  const std::string texts = text.substr(0, steps);
  // A program that strips the text leaves no end of the line of an empty prompt.
  const bool no_prompt = texts.starts_with(kNegative);
  const std::size_t negative = no_prompt ? 0 : texts.find(std::string("\n").append(kNegative));
  ParametersReader reader(where, given, options);
  reader.set("prompt", texts.substr(0, negative));
  if (negative != std::string::npos)
    reader.set("negative_prompt", texts.substr(texts.find(kNegative, negative) + kNegative.size()));
  reader.read(parse_entries(text.substr(steps == 0 ? 0 : steps + 1)));
  AppliedMetadata applied;
  applied.batch = {options.seed, 1};
  applied.warnings = reader.warnings();
  applied.a1111_clip_skip = reader.clip_skip();
  return applied;
}

std::int64_t clip_skip_of_a1111(std::int64_t theirs, const ModelBundle& bundle) {
  if (published_family(bundle) == ModelFamily::kSd2) return 0;
  const std::int64_t first = bundle.is_xl() ? kPenultimateLayer : kLastLayer;
  return std::max(theirs, first) - first;
}

}  // namespace sdtune::model
