#include "model/lora/lora_list.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "model/lora/lora_file.h"

namespace sdtune::model {
namespace {

constexpr double kLargestWeight = 100;

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The last ':' separates a weight from the file where a number follows it.
WeightedLora split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text};
  const std::optional<double> weight = parse_number(std::string_view(text).substr(colon + 1));
  return weight ? WeightedLora{text.substr(0, colon), *weight} : WeightedLora{text};
}

// Of the branches. By place too: branches of one name replace each other.
std::string branch_name(const std::vector<WeightedLora>& loras, std::size_t place) {
  return loras[place].file.string() + " " + std::to_string(place);
}

}  // namespace

std::vector<WeightedLora> parse_lora_list(const std::vector<std::string>& texts, const std::string& where,
                                          std::vector<Problem>& problems) {
  std::vector<WeightedLora> loras;
  for (const std::string& text : texts) {
    WeightedLora lora = split(text);
    if (!std::isfinite(lora.weight) || std::abs(lora.weight) > kLargestWeight) {
      problems.push_back({where, "has a weight out of range (got " + text + "; allowed: -100 to 100)", ""});
      continue;
    }
    try {
      lora.file = find_lora_file(lora.file);
      loras.push_back(std::move(lora));
    } catch (const WeightError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  return loras;
}

std::string weight_text(double weight) {
  std::array<char, 32> digits;
  const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), weight);
  return {digits.data(), end};
}

std::string lora_text(const WeightedLora& lora) {
  return lora.file.string() + ":" + weight_text(lora.weight);
}

void attach_loras(const ModelBundle& bundle, const std::vector<WeightedLora>& loras) {
  try {
    for (std::size_t i = 0; i < loras.size(); ++i) {
      attach_lora(bundle, branch_name(loras, i), read_lora(loras[i].file, bundle), loras[i].weight);
    }
  } catch (...) {
    detach_loras(bundle, loras);
    throw;
  }
}

void detach_loras(const ModelBundle& bundle, const std::vector<WeightedLora>& loras) {
  for (std::size_t i = 0; i < loras.size(); ++i) detach_lora(bundle, branch_name(loras, i));
}

}  // namespace sdtune::model
