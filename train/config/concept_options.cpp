#include "train/config/concept_options.h"

#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "model/base/json.h"

namespace sdtune::train {

namespace {

ConceptOptions only_concept(const DataOptions& options) {
  return {options.images,         options.instance_prompt,  options.class_prompt,
          options.class_data_dir, options.num_class_images, options.repeats};
}

// A value of an entry as set_field takes it: a text as it is, a number as JSON writes it.
std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_entry(const Json& entry, const std::string& where, ConceptOptions& subject, std::vector<Problem>& problems) {
  const FieldList fields = subject.fields();
  std::map<std::string, std::string> given;  // option -> the key that gave it: its name, or another name of it
  for (const auto& [key, value] : entry.items()) {
    if (value.is_null()) continue;  // as good as left out
    const std::string place = where + "." + key;
    const Field* field = find_field(fields, key);
    if (field == nullptr) {
      const std::vector<std::string> names = field_names(fields);
      const std::string near = nearest_name(key, names);
      const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
      problems.push_back(
          {place, "unknown key (allowed: " + allowed + ")", near.empty() ? "" : "did you mean " + near + "?"});
      continue;
    }
    const auto [first, is_new] = given.emplace(field->info.name, key);
    if (!is_new) {
      problems.push_back({place, "is the same option as " + first->second, "leave one out"});
      continue;
    }
    try {
      if (value.is_structured()) throw ConfigError(place, "must be a plain value");
      set_field(*field, plain_text(value), place);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (subject.images.empty()) problems.push_back({where + ".images", "is not given", "name the folder of its photos"});
}

}  // namespace

FieldList ConceptOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Subject");
  group.add("images", &images, "Folder with the photos of this subject.").aliases({"instance_data_dir"});
  group.add("instance_prompt", &instance_prompt, "Caption of its photos that have no caption of their own.");
  group.add("class_prompt", &class_prompt, "Prompt of the class that this subject belongs to.");
  group.add("class_data_dir", &class_data_dir, "Folder of its class images.");
  group.add("num_class_images", &num_class_images, "Number of class images of this subject.")
      .range(1, kMostClassImages);
  group.add("repeats", &repeats, "How often each of its photos occurs in an epoch.").range(1, kMostRepeats);
  return list;
}

std::vector<ConceptOptions> concepts_of(const DataOptions& options, std::vector<Problem>& problems) {
  if (options.concepts.empty()) return {only_concept(options)};
  std::vector<ConceptOptions> concepts;
  for (std::size_t i = 0; i < options.concepts.size(); ++i) {
    const std::string where = "concepts[" + std::to_string(i + 1) + "]";
    const Json entry = Json::parse(options.concepts[i], nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object()) {
      problems.push_back({where,
                          "must be a mapping (got " + options.concepts[i] +
                              "; allowed: {\"images\": DIR, \"instance_prompt\": TEXT, ...})",
                          ""});
      continue;
    }
    ConceptOptions subject = only_concept(options);
    subject.images.clear();
    read_entry(entry, where, subject, problems);
    concepts.push_back(std::move(subject));
  }
  return concepts;
}

std::vector<ConceptOptions> concepts_of(const DataOptions& options) {
  std::vector<Problem> problems;
  std::vector<ConceptOptions> concepts = concepts_of(options, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return concepts;
}

}  // namespace sdtune::train
