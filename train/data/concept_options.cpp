#include "train/data/concept_options.h"

#include <utility>

#include "model/base/json.h"

namespace sdtune::train {

namespace {

constexpr double kMostRepeats = 10000;
constexpr double kMostClassImages = 100000;

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
  for (const auto& [key, value] : entry.items()) {
    const std::string place = where + "." + key;
    const Field* field = find_field(fields, key);
    if (field == nullptr) {
      const std::string near = nearest_name(key, field_names(fields));
      std::string allowed;
      for (const Field& known : fields) allowed += (allowed.empty() ? "" : ", ") + known.info.name;
      problems.push_back(
          {place, "unknown key (allowed: " + allowed + ")", near.empty() ? "" : "did you mean " + near + "?"});
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
  FieldInfo folder{.name = "images", .help = "Folder with the photos of this subject."};
  folder.aliases = {"instance_data_dir"};
  FieldInfo count{.name = "num_class_images", .help = "Number of class pictures of this subject."};
  count.min = 1;
  count.max = kMostClassImages;
  FieldInfo repeats{.name = "repeats", .help = "How often an epoch shows each of its photos."};
  repeats.min = 1;
  repeats.max = kMostRepeats;
  return {{std::move(folder), &images},
          {{.name = "instance_prompt", .help = "What a photo without a caption of its own shows."}, &instance_prompt},
          {{.name = "class_prompt", .help = "Describes the class that this subject belongs to."}, &class_prompt},
          {{.name = "class_data_dir", .help = "Folder of its class pictures."}, &class_data_dir},
          {std::move(count), &num_class_images},
          {std::move(repeats), &this->repeats}};
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
