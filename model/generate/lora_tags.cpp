#include "model/generate/lora_tags.h"

#include "model/files/file_system.h"

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOpening = "<lora:";

// A tag's name as --lora would say it.
std::string path_of(const LoraTag& tag, const std::string& folder) {
  const fs::path beside = fs::path(folder) / (tag.name + ".safetensors");
  return is_file(beside) ? beside.string() : tag.name;
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

void resolve_lora_tags(GenerateOptions& options, const std::string& folder, const std::string& where,
                       std::vector<Problem>& problems) {
  if (options.prompt_syntax == "plain") return;
  for (const LoraTag& tag : take_lora_tags(options.prompt)) {
    if (tag.weight.find(':') != std::string::npos) {
      problems.push_back({where, "gives a LoRA two weights (got " + tag.text + "; allowed: one)",
                          "UNet and text encoder have the same here"});
      continue;
    }
    std::vector<Problem> unknown;
    const std::vector<WeightedLora> found = parse_lora_list({path_of(tag, folder) + ":" + tag.weight}, where, unknown);
    if (found.empty()) {
      problems.push_back({where,
                          "names a LoRA that is not there (got " + tag.text + "; looked for " +
                              (fs::path(folder) / (tag.name + ".safetensors")).string() + ")",
                          "--lora-dir says where they are"});
      continue;
    }
    options.loras.push_back(found.front());
  }
}

std::string lora_tags_text(const std::vector<WeightedLora>& loras) {
  std::string text;
  for (const WeightedLora& lora : loras) {
    text.append(text.empty() ? "" : " ").append(kOpening).append(lora.file.stem().string());
    text.append(":").append(weight_text(lora.weight)).append(">");
  }
  return text;
}

}  // namespace sdtune::model
