#include "app/commands/lora_tags.h"

#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "app/commands/lora_argument.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOpening = "<lora:";

std::string text_of(const LoraArgument& lora) {
  std::ostringstream text;
  text << lora.file.string() << ':' << lora.weight;
  return text.str();
}

// A tag's name as --lora would say it.
std::string path_of(const LoraTag& tag, const std::string& folder) {
  const fs::path beside = fs::path(folder) / (tag.name + ".safetensors");
  std::error_code status;
  return fs::is_regular_file(beside, status) ? beside.string() : tag.name;
}

}  // namespace

std::vector<LoraTag> take_lora_tags(std::string& prompt) {
  std::vector<LoraTag> tags;
  for (std::size_t begin = prompt.find(kOpening); begin != std::string::npos; begin = prompt.find(kOpening, begin)) {
    const std::size_t end = prompt.find('>', begin);
    if (end == std::string::npos) break;  // the words stay words
    LoraTag tag;
    tag.text = prompt.substr(begin, end + 1 - begin);
    tag.name = prompt.substr(begin + kOpening.size(), end - begin - kOpening.size());
    const std::size_t colon = tag.name.find(':');
    if (colon != std::string::npos) {
      tag.weight = tag.name.substr(colon + 1);
      tag.name.erase(colon);
    }
    const bool space_around =
        (begin == 0 || prompt[begin - 1] == ' ') && (end + 1 == prompt.size() || prompt[end + 1] == ' ');
    const bool space_after = space_around && end + 1 < prompt.size();
    prompt.erase(begin, tag.text.size() + (space_after ? 1 : 0));
    tags.push_back(std::move(tag));
  }
  while (!tags.empty() && prompt.ends_with(' ')) prompt.pop_back();
  return tags;
}

void resolve_loras(SampleOptions& options, const std::string& where, std::vector<Problem>& problems) {
  std::vector<std::string> texts = options.lora;
  std::vector<LoraTag> tags;
  if (options.prompt_syntax != "plain") tags = take_lora_tags(options.prompt);
  for (const LoraTag& tag : tags) {
    if (tag.weight.find(':') != std::string::npos) {
      problems.push_back({where, "gives a LoRA two weights (got " + tag.text + "; allowed: one)",
                          "UNet and text encoder have the same here"});
      continue;
    }
    std::vector<Problem> unknown;
    const std::string text = path_of(tag, options.lora_dir) + ":" + tag.weight;
    if (read_lora_arguments({text}, unknown).empty()) {
      problems.push_back({where,
                          "names a LoRA that is not there (got " + tag.text + "; looked for " +
                              (fs::path(options.lora_dir) / (tag.name + ".safetensors")).string() + ")",
                          "--lora-dir says where they are"});
      continue;
    }
    texts.push_back(text);
  }
  options.lora.clear();
  for (const LoraArgument& lora : read_lora_arguments(texts, problems)) options.lora.push_back(text_of(lora));
}

std::string lora_tags_text(const std::vector<std::string>& loras) {
  std::string text;
  std::vector<Problem> gone;
  for (const LoraArgument& lora : read_lora_arguments(loras, gone)) {
    std::ostringstream weight;
    weight << lora.weight;
    text.append(text.empty() ? "" : " ").append(kOpening).append(lora.file.stem().string());
    text.append(":").append(weight.str()).append(">");
  }
  return text;
}

}  // namespace sdtune::app
