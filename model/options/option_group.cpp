#include "model/options/option_group.h"

#include <utility>

namespace sdtune {

OptionDetails& OptionDetails::at_least(double min) {
  info_->min = min;
  info_->exclusive_min = false;
  return *this;
}

OptionDetails& OptionDetails::above(double min) {
  info_->min = min;
  info_->exclusive_min = true;
  return *this;
}

OptionDetails& OptionDetails::at_most(double max) {
  info_->max = max;
  return *this;
}

OptionDetails& OptionDetails::unit(std::string unit) {
  info_->unit = std::move(unit);
  return *this;
}

OptionDetails& OptionDetails::choices(std::vector<std::string> allowed) {
  info_->choices = std::move(allowed);
  return *this;
}

OptionDetails& OptionDetails::old_choice(std::string old, std::string now) {
  info_->old_choices.emplace_back(std::move(old), std::move(now));
  return *this;
}

OptionDetails& OptionDetails::aliases(std::vector<std::string> names) {
  info_->aliases = std::move(names);
  return *this;
}

OptionDetails& OptionDetails::placeholder(std::string shown) {
  info_->placeholder = std::move(shown);
  return *this;
}

OptionDetails& OptionDetails::takes_mappings() {
  info_->takes_mappings = true;
  return *this;
}

OptionDetails& OptionDetails::secret() {
  info_->is_secret = true;
  return *this;
}

OptionDetails& OptionDetails::not_in_metadata() {
  info_->in_metadata = false;
  return *this;
}

OptionDetails& OptionDetails::resume(Resume rule) {
  info_->resume = rule;
  return *this;
}

OptionDetails OptionGroup::add(std::string name, FieldPointer value, std::string help) {
  FieldInfo info{.name = std::move(name), .help = std::move(help), .group = heading_};
  list_->push_back({std::move(info), value});
  return OptionDetails(list_->back().info);
}

}  // namespace sdtune
