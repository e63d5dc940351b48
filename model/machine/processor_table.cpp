#include "model/machine/processor_table.h"

#include "model/base/environment.h"
#include "model/files/install_paths.h"
#include "model/options/yaml_entry.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

ProcessorFormats read_formats(const YamlValue& value, const std::string& where) {
  const YamlEntry entry(value, where, {"vendor", "family", "model", "isa", "sample", "train", "measured"});
  return {{entry.text("vendor"), entry.text("family"), entry.text("model"), entry.text("isa")},
          entry.one_of("sample", {"float32", "bfloat16"}),
          entry.one_of("train", {"float32", "bfloat16"}),
          entry.text("measured")};
}

std::optional<ProcessorFormats> find_in(const fs::path& table, const ProcessorKind& kind) {
  if (table.empty() || !is_file(table)) return std::nullopt;
  for (ProcessorFormats& formats : read_processor_table(table)) {
    if (formats.kind == kind) return std::move(formats);
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

std::string entry_text(const ProcessorFormats& formats) {
  return "  - vendor: " + quoted(formats.kind.vendor) + "\n    family: " + quoted(formats.kind.family) +
         "\n    model: " + quoted(formats.kind.model) + "\n    isa: " + quoted(formats.kind.isa) +
         "\n    sample: " + formats.sample + "\n    train: " + formats.train +
         "\n    measured: " + quoted(formats.measured) + "\n";
}

}  // namespace

fs::path own_processor_table() {
  if (const std::string file = environment_variable("SDTUNE_PROCESSORS"); !file.empty()) return file;
  const std::string config = environment_variable("XDG_CONFIG_HOME"), home = environment_variable("HOME");
  if (config.empty() && home.empty()) return {};
  return (config.empty() ? fs::path(home) / ".config" : fs::path(config)) / "sdtune" / "processors.yaml";
}

std::vector<ProcessorFormats> read_processor_table(const fs::path& path) {
  const YamlValue file = read_yaml(path);
  std::vector<ProcessorFormats> table;
  if (file.kind == YamlValue::Kind::kNull) return table;
  for (const YamlValue& item : YamlEntry(file, path.string(), {"processors"}).items("processors")) {
    table.push_back(read_formats(item, path.string()));
  }
  return table;
}

std::optional<ProcessorFormats> find_formats(const ProcessorKind& kind) {
  if (auto own = find_in(own_processor_table(), kind)) return own;
  return find_in(find_shared_file("configs/processors.yaml"), kind);
}

void add_formats(FileSystem& files, const fs::path& path, const ProcessorFormats& formats) {
  std::vector<ProcessorFormats> table;
  if (is_file(path)) table = read_processor_table(path);
  std::erase_if(table, [&](const ProcessorFormats& each) { return each.kind == formats.kind; });
  table.push_back(formats);
  std::string text =
      "# Written by `sdtune tune-machine`: number formats by kind of processor, before "
      "configs/processors.yaml.\nprocessors:\n";
  for (const ProcessorFormats& each : table) text += entry_text(each);
  create_parent_folder(files, path);
  write_file_atomically(files, path, text);
}

}  // namespace sdtune::model
