#include "train/plan/gpu_table.h"

#include <cmath>

#include "model/base/error.h"
#include "model/options/yaml_entry.h"

namespace sdtune::train {
namespace {

MeasuredStep read_measured(const YamlValue& value, const std::string& where) {
  const YamlEntry entry(value, where, {"model", "method", "resolution", "batch", "seconds_per_step", "class_images"});
  const bool says_class_images = entry.find("class_images") != nullptr;
  return {entry.text("model"),
          entry.text("method"),
          static_cast<std::int64_t>(entry.number("resolution", 65536)),
          static_cast<std::int64_t>(entry.number("batch", 1e6)),
          entry.number("seconds_per_step", 1e6),
          says_class_images && entry.one_of("class_images", {"true", "false"}) == "true"};
}

GpuOffer read_offer(const YamlValue& value, const std::string& where, double utilisation) {
  const YamlEntry entry(value, where, {"name", "memory_gib", "tflops", "price_per_hour", "utilisation", "measured"});
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
  const YamlEntry entry(file, where, {"currency", "utilisation", "float32_slowdown", "least_seconds_per_step", "gpus"});
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
