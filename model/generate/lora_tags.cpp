#include "model/generate/lora_tags.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>

#include "model/files/file_system.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOpening = "<lora:";
constexpr std::string_view kHypernetworkOpening = "<hypernet:";
// "<lyco:" is a name that A1111 has for "<lora:".
constexpr std::array kOpenings = {kOpening, std::string_view("<lyco:"), kHypernetworkOpening};

struct TagBegin {
  std::size_t at = std::string::npos;
  std::string_view opening = {};
};

// The first tag from `from` on.
TagBegin find_tag(const std::string& prompt, std::size_t from) {
  TagBegin first;
  for (const std::string_view opening : kOpenings) {
    const std::size_t at = prompt.find(opening, from);
    if (at < first.at) first = {at, opening};
  }
  return first;
}

// A tag's name as --lora would say it.
std::string path_of(const LoraTag& tag, const std::string& folder) {
  const fs::path beside = fs::path(folder) / (tag.name + ".safetensors");
  return is_file(beside) ? beside.string() : tag.name;
}

}  // namespace

std::vector<LoraTag> take_lora_tags(std::string& prompt) {
  std::vector<LoraTag> tags;
  for (TagBegin tag_begin = find_tag(prompt, 0); tag_begin.at != std::string::npos;
       tag_begin = find_tag(prompt, tag_begin.at)) {
    const auto [begin, opening] = tag_begin;
    const std::size_t end = prompt.find('>', begin);
    if (end == std::string::npos) break;  // the words stay words
    LoraTag tag;
    tag.text = prompt.substr(begin, end + 1 - begin);
    tag.name = prompt.substr(begin + opening.size(), end - begin - opening.size());
    tag.is_hypernetwork = opening == kHypernetworkOpening;
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
    if (tag.is_hypernetwork) {
      problems.push_back({where, "calls a hypernetwork, which sdtune cannot apply (got " + tag.text + ")",
                          "a prompt may call LoRAs: <lora:NAME:WEIGHT>"});
      continue;
    }
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
