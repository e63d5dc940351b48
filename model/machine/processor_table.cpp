#include "model/machine/processor_table.h"

#include "model/base/environment.h"
#include "model/files/install_paths.h"
#include "model/options/yaml_entry.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

CpuImplementation read_implementation(const YamlEntry& entry) {
  CpuImplementation implementation = default_cpu_implementation();
  for (const CpuChoice& choice : kCpuChoices) {
    if (entry.find(choice.name) == nullptr) continue;
    choice.set(implementation, entry.one_of(choice.name, {choice.values[0], choice.values[1]}));
  }
  return implementation;
}

ProcessorEntry read_entry(const YamlValue& value, const std::string& where) {
  std::vector<std::string_view> keys = {"vendor", "family", "model", "isa", "sample", "train", "measured"};
  for (const CpuChoice& choice : kCpuChoices) keys.emplace_back(choice.name);
  const YamlEntry entry(value, where, keys);
  return {{entry.text("vendor"), entry.text("family"), entry.text("model"), entry.text("isa")},
          entry.one_of("sample", {"float32", "bfloat16"}),
          entry.one_of("train", {"float32", "bfloat16"}),
          entry.text("measured"),
          read_implementation(entry)};
}

std::optional<ProcessorEntry> find_in(const fs::path& table, const ProcessorKind& kind) {
  if (table.empty() || !is_file(table)) return std::nullopt;
  for (ProcessorEntry& entry : read_processor_table(table)) {
    if (entry.kind == kind) return std::move(entry);
  }
  return std::nullopt;
}

// In double quotes, as YAML reads back; texts of cpuinfo and ours have no control characters.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string entry_text(const ProcessorEntry& entry) {
  std::string text = "  - vendor: " + quoted(entry.kind.vendor) + "\n    family: " + quoted(entry.kind.family) +
                     "\n    model: " + quoted(entry.kind.model) + "\n    isa: " + quoted(entry.kind.isa) +
                     "\n    sample: " + entry.sample + "\n    train: " + entry.train + "\n";
  for (const CpuChoice& choice : kCpuChoices) {
    text.append("    ").append(choice.name).append(": ");
    text.append(choice.value_in(entry.implementation)).append("\n");
  }
  return text + "    measured: " + quoted(entry.measured) + "\n";
}

CpuImplementation implementation_in_table() {
  const std::optional<ProcessorEntry> entry = find_processor(processor_kind());
  return entry ? entry->implementation : default_cpu_implementation();
}

}  // namespace

fs::path own_processor_table() {
  if (const std::string file = environment_variable("SDTUNE_PROCESSORS"); !file.empty()) return file;
  const std::string config = environment_variable("XDG_CONFIG_HOME"), home = home_folder();
  if (config.empty() && home.empty()) return {};
  return (config.empty() ? fs::path(home) / ".config" : fs::path(config)) / "sdtune" / "processors.yaml";
}

std::vector<ProcessorEntry> read_processor_table(const fs::path& path) {
  const YamlValue file = read_yaml(path);
  std::vector<ProcessorEntry> table;
  if (file.kind == YamlValue::Kind::kNull) return table;
  for (const YamlValue& item : YamlEntry(file, path.string(), {"processors"}).items("processors")) {
    table.push_back(read_entry(item, path.string()));
  }
  return table;
}

std::optional<ProcessorEntry> find_processor(const ProcessorKind& kind) {
  if (auto own = find_in(own_processor_table(), kind)) return own;
  return find_in(find_shared_file("configs/processors.yaml"), kind);
}

void add_processor(FileSystem& files, const fs::path& path, const ProcessorEntry& entry) {
  std::vector<ProcessorEntry> table;
  if (is_file(path)) table = read_processor_table(path);
  std::erase_if(table, [&](const ProcessorEntry& each) { return each.kind == entry.kind; });
  table.push_back(entry);
  std::string text =
      "# Written by `sdtune tune-machine`: what is fastest by kind of processor, before "
      "configs/processors.yaml.\nprocessors:\n";
  for (const ProcessorEntry& each : table) text += entry_text(each);
  create_parent_folder(files, path);
  write_file_atomically(files, path, text);
}

void take_implementation_from_table() {
  set_cpu_implementation_source(&implementation_in_table);
}

}  // namespace sdtune::model
