// Declares options, one call each:
//   OptionGroup group(list, "Loss");
//   group.add("noise_offset", &noise_offset, "Standard deviation of a shift of each channel's noise.").range(0, 1);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/options/field.h"

namespace sdtune {

// What add() returns: sets what is known of the option just added. Use it in the same expression.
class OptionDetails {
 public:
  explicit OptionDetails(FieldInfo& info) : info_(&info) {}

  // Bounds of a number, inclusive unless said otherwise.
  OptionDetails& range(double min, double max) { return at_least(min).at_most(max); }
  OptionDetails& at_least(double min);
  OptionDetails& above(double min);  // exclusive
  OptionDetails& at_most(double max);

  OptionDetails& unit(std::string unit);                        // "steps", "px", "s"
  OptionDetails& choices(std::vector<std::string> allowed);     // of a text
  OptionDetails& old_choice(std::string old, std::string now);  // still accepted, and read as `now`
  OptionDetails& aliases(std::vector<std::string> names);       // other accepted names of the option
  OptionDetails& placeholder(std::string shown);                // what --help shows for the value
  OptionDetails& takes_mappings();                              // of a list of strings: YAML items are mappings
  OptionDetails& secret();                                      // of a text: a password, a webhook's address
  OptionDetails& not_in_metadata();                             // has no influence on a generated image
  OptionDetails& resume(Resume rule);                           // of a training run's option

 private:
  FieldInfo* info_;
};

// Options under one heading of --help and the reference.
class OptionGroup {
 public:
  // Adds to `list`, which outlives the group.
  OptionGroup(FieldList& list, std::string heading) : list_(&list), heading_(std::move(heading)) {}

  // `name` in snake_case; `value` points to the variable, which holds the default; `help` is one sentence.
  OptionDetails add(std::string name, FieldPointer value, std::string help);

 private:
  FieldList* list_;
  std::string heading_;
};

}  // namespace sdtune
