#include "model/generate/prompt_list.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/files/install_paths.h"
#include "model/options/yaml.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPromptFileBytes = std::size_t{1} << 20;
constexpr const char* kPromptFolder = "configs/prompts";

fs::path find_prompt_file(const std::string& file, const std::string& where) {
  if (is_file(file)) return file;
  if (fs::path(file).is_relative() && !file.empty()) {
    for (const fs::path& name : {fs::path(file), fs::path(kPromptFolder) / (file + ".yaml")}) {
      const fs::path found = find_shared_file(name);
      if (is_file(found)) return found;
    }
  }
  throw ConfigError(where, "there is no such file (got " + file + ")",
                    "give a YAML list, a text file with a prompt a line, or portraits");
}

std::string line_of_file(const fs::path& path, std::int64_t line) {
  return path.string() + ":" + std::to_string(line);
}

std::vector<PromptLine> prompts_of_yaml(const fs::path& path) {
  const YamlValue list = read_yaml(path);
  if (list.kind != YamlValue::Kind::kSequence) {
    throw ConfigError(path.string(), "is not a list of prompts", "begin each line with '- '");
  }
  std::vector<PromptLine> prompts;
  for (const YamlValue& item : list.items) {
    if (item.kind != YamlValue::Kind::kScalar || item.text.empty()) {
      throw ConfigError(line_of_file(path, item.line), "is not a prompt", "put a text with colons or braces in quotes");
    }
    prompts.push_back({item.text, line_of_file(path, item.line)});
  }
  return prompts;
}

std::vector<PromptLine> prompts_of_text(const fs::path& path) {
  std::string text = read_file(path, kMaxPromptFileBytes);
  constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, std::strlen(kByteOrderMark));
  std::istringstream lines(std::move(text));
  std::vector<PromptLine> prompts;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    if (valid_text(line) != line) {
      throw ConfigError(line_of_file(path, number), "is not UTF-8", "save the file as UTF-8 text");
    }
    prompts.push_back({line, line_of_file(path, number)});
  }
  return prompts;
}

}  // namespace

std::vector<PromptLine> read_prompt_lines(const std::string& file, const std::string& where) {
  const fs::path path = find_prompt_file(file, where);
  const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
  std::vector<PromptLine> prompts = is_yaml ? prompts_of_yaml(path) : prompts_of_text(path);
  if (prompts.empty()) throw ConfigError(path.string(), "has no prompt");
  return prompts;
}

std::string with_trigger(std::string prompt, const std::string& trigger) {
  for (std::size_t at = prompt.find(kTriggerMark); at != std::string::npos;
       at = prompt.find(kTriggerMark, at + trigger.size())) {
    prompt.replace(at, kTriggerMark.size(), trigger);
  }
  return prompt;
}

}  // namespace sdtune::model
