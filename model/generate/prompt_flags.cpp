#include "model/generate/prompt_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

constexpr std::string_view kFlagStart = " --";
constexpr const char* kAllowedFlags = "--n, --w, --h, --d, --l, --s, --ss, --ds";

constexpr std::array<std::pair<const char*, const char*>, 8> kFlagOptions = {{{"n", "negative_prompt"},
                                                                              {"w", "width"},
                                                                              {"h", "height"},
                                                                              {"d", "seed"},
                                                                              {"l", "guidance_scale"},
                                                                              {"s", "steps"},
                                                                              {"ss", "sampler"},
                                                                              {"ds", "sampler"}}};

// kohya's names where they are not ours. Its "dpmsolver" is DPM-Solver, not DPM-Solver++, and no sampler here.
constexpr std::array<std::pair<const char*, const char*>, 6> kKohyaSamplers = {{{"k_lms", "lms"},
                                                                                {"k_euler", "euler"},
                                                                                {"k_euler_a", "euler_a"},
                                                                                {"dpmsolver++", "dpm++2m"},
                                                                                {"k_heun", "heun"},
                                                                                {"plms", "pndm"}}};

std::string without_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::string our_sampler(const std::string& name) {
  for (const auto& [theirs, ours] : kKohyaSamplers) {
    if (name == theirs) return ours;
  }
  return name;
}

void set_flag(const FieldList& fields, std::string_view text, const std::string& where) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string flag(text.substr(0, space));
  const auto* known =
      std::find_if(kFlagOptions.begin(), kFlagOptions.end(), [&](const auto& pair) { return flag == pair.first; });
  if (known == kFlagOptions.end()) {
    throw ConfigError(where, "unknown flag (got --" + flag + "; allowed: " + kAllowedFlags + ")",
                      "a prompt cannot hold ' --'");
  }
  const std::string value = without_spaces(text.substr(space));
  const std::string name = known->second;
  set_field(*find_field(fields, name), name == "sampler" ? our_sampler(value) : value, where + ": --" + flag);
}

}  // namespace

GenerateOptions options_of_line(const GenerateOptions& options, const std::string& text, const std::string& where) {
  const std::string line = " " + text;  // a flag at its start is one, too
  GenerateOptions result = options;
  const FieldList fields = result.fields();
  std::size_t at = line.find(kFlagStart);
  result.prompt = without_spaces(std::string_view(line).substr(0, at));
  while (at != std::string::npos) {
    const std::size_t begin = at + kFlagStart.size();
    at = line.find(kFlagStart, begin);
    set_flag(fields, std::string_view(line).substr(begin, at == std::string::npos ? at : at - begin), where);
  }
  if (result.prompt.empty()) throw ConfigError(where, "has flags and no prompt");
  return result;
}

}  // namespace sdtune::model
