#include "train/plan/gpu_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "model/base/error.h"
#include "model/options/yaml.h"

namespace sdtune::train {
namespace {

// A mapping of the file, read key by key; an unknown key is refused.
class Entry {
 public:
  Entry(const YamlValue& value, std::string where, std::initializer_list<std::string_view> allowed)
      : value_(value), where_(std::move(where)) {
    if (value.kind != YamlValue::Kind::kMapping) fail(value.line, "is not a mapping", "keys and values");
    const std::string names = fmt::format("{}", fmt::join(allowed, ", "));
    for (const auto& [key, entry] : value.entries) {
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        fail(entry.line, "has an unknown key " + key, names);
      }
    }
  }

  const YamlValue* find(std::string_view key) const {
    for (const auto& [name, value] : value_.entries) {
      if (name == key) return &value;
    }
    return nullptr;
  }
  std::string text(std::string_view key) const {
    const YamlValue* value = find(key);
    if (value == nullptr) fail(value_.line, "lacks " + std::string(key), "a text");
    if (value->kind != YamlValue::Kind::kScalar || value->text.empty()) {
      fail(value->line, std::string(key) + " is no text", "a text");
    }
    return value->text;
  }
  // Above 0, and not above `most`.
  double number(std::string_view key, double most, std::optional<double> otherwise = {}) const {
    const YamlValue* value = find(key);
    if (value == nullptr && otherwise) return *otherwise;
    const std::string words = text(key);
    char* end = nullptr;
    const double found = std::strtod(words.c_str(), &end);
    if (*end != '\0' || !std::isfinite(found) || found <= 0 || found > most) {
      fail(value->line, std::string(key) + " is not allowed (got " + words + ")", range(most));
    }
    return found;
  }
  const std::vector<YamlValue>& items(std::string_view key) const {
    static const std::vector<YamlValue> kNone;
    const YamlValue* value = find(key);
    if (value == nullptr) return kNone;
    if (value->kind != YamlValue::Kind::kSequence) fail(value->line, std::string(key) + " is no list", "a list");
    return value->items;
  }

 private:
  static std::string range(double most) {
    std::string text = std::to_string(most);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return "above 0, at most " + text;
  }
  [[noreturn]] void fail(int line, const std::string& what, const std::string& allowed) const {
    throw ConfigError(where_ + ":" + std::to_string(line), what + " (allowed: " + allowed + ")");
  }

  const YamlValue& value_;
  std::string where_;
};

MeasuredStep read_measured(const YamlValue& value, const std::string& where) {
  const Entry entry(value, where, {"model", "method", "resolution", "batch", "seconds_per_step"});
  return {entry.text("model"), entry.text("method"), static_cast<std::int64_t>(entry.number("resolution", 65536)),
          static_cast<std::int64_t>(entry.number("batch", 1e6)), entry.number("seconds_per_step", 1e6)};
}

GpuOffer read_offer(const YamlValue& value, const std::string& where, double utilisation) {
  const Entry entry(value, where, {"name", "memory_gib", "tflops", "price_per_hour", "utilisation", "measured"});
  GpuOffer offer{entry.text("name"),
                 entry.number("memory_gib", 1e6),
                 entry.number("tflops", 1e7),
                 entry.number("price_per_hour", 1e6),
                 entry.number("utilisation", 1, utilisation),
                 {}};
  for (const YamlValue& item : entry.items("measured")) offer.measured.push_back(read_measured(item, where));
  return offer;
}

}  // namespace

std::int64_t GpuOffer::memory_bytes() const {
  return std::llround(memory_gib * 1024 * 1024 * 1024);
}

GpuTable read_gpu_table(const std::filesystem::path& path) {
  const std::string where = path.string();
  const YamlValue file = read_yaml(path);
  const Entry entry(file, where, {"currency", "utilisation", "float32_slowdown", "least_seconds_per_step", "gpus"});
  GpuTable table;
  table.currency = entry.text("currency");
  table.float32_slowdown = entry.number("float32_slowdown", 1000, 1.0);
  table.least_seconds_per_step = entry.number("least_seconds_per_step", 1000, 0.0);
  const double utilisation = entry.number("utilisation", 1);
  for (const YamlValue& item : entry.items("gpus")) table.offers.push_back(read_offer(item, where, utilisation));
  if (table.offers.empty()) throw ConfigError(where, "lists no GPU under gpus");
  return table;
}

}  // namespace sdtune::train
