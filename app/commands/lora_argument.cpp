#include "app/commands/lora_argument.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "model/lora/lora_file.h"

namespace sdtune::app {
namespace {

constexpr double kLargestWeight = 100;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The last ':' parts a weight from the file when a number stands behind it.
LoraArgument split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text};
  const std::optional<double> weight = number(std::string_view(text).substr(colon + 1));
  return weight ? LoraArgument{text.substr(0, colon), *weight} : LoraArgument{text};
}

// Of the branches. By place too: branches of one name replace each other.
std::string name_of(const std::vector<LoraArgument>& loras, std::size_t place) {
  return loras[place].file.string() + " " + std::to_string(place);
}

}  // namespace

std::vector<LoraArgument> read_lora_arguments(const std::vector<std::string>& texts, std::vector<Problem>& problems) {
  std::vector<LoraArgument> loras;
  for (const std::string& text : texts) {
    LoraArgument lora = split(text);
    if (!std::isfinite(lora.weight) || std::abs(lora.weight) > kLargestWeight) {
      problems.push_back({"--lora", "has no weight that can be (got " + text + "; allowed: -100 to 100)", ""});
      continue;
    }
    try {
      lora.file = model::find_lora_file(lora.file);
      loras.push_back(std::move(lora));
    } catch (const WeightError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  return loras;
}

void attach_loras(const model::ModelBundle& bundle, const std::vector<LoraArgument>& loras) {
  for (std::size_t i = 0; i < loras.size(); ++i) {
    model::attach_lora(bundle, name_of(loras, i), model::read_lora(loras[i].file, bundle), loras[i].weight);
  }
}

void detach_loras(const model::ModelBundle& bundle, const std::vector<LoraArgument>& loras) {
  for (std::size_t i = 0; i < loras.size(); ++i) model::detach_lora(bundle, name_of(loras, i));
}

}  // namespace sdtune::app
