// Declares options of a training run. Each says whether a resumed run must keep it: without that it does not compile.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/options/option_group.h"

namespace sdtune::train {

// Options of which each has its resume rule; only a TrainOptionGroup adds to it.
class TrainFieldList {
 public:
  operator const FieldList&() const { return fields_; }

 private:
  friend class TrainOptionGroup;
  FieldList fields_;
};

// As OptionGroup, for the options that TrainConfig is made of.
class TrainOptionGroup {
 public:
  TrainOptionGroup(TrainFieldList& list, std::string heading) : group_(list.fields_, std::move(heading)) {}

  OptionDetails add(std::string name, FieldPointer value, Resume resume, std::string help) {
    return group_.add(std::move(name), value, std::move(help)).resume(resume);
  }

 private:
  OptionGroup group_;
};

}  // namespace sdtune::train
