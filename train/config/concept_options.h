// The subjects of a run: one, said by the options themselves, or several, each an entry of `concepts:`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/data_options.h"

namespace sdtune::train {

// One subject. Named as the options that say the same of the only subject; an entry of `concepts` has what it leaves
// out from those.
struct ConceptOptions {
  std::string images;
  std::string instance_prompt;
  std::string class_prompt;
  std::string class_data_dir;  // empty: the run's own folder
  std::int64_t num_class_images = 1;
  std::int64_t repeats = 1;

  FieldList fields();
};

// The subjects in their order, at least one. What is wrong with `concepts` goes to `problems`, each with the entry and
// its key ("concepts[2].repeats"); an entry that is no mapping is left out.
std::vector<ConceptOptions> concepts_of(const DataOptions& options, std::vector<Problem>& problems);

// The same for options that were checked. Throws ConfigError with all problems.
std::vector<ConceptOptions> concepts_of(const DataOptions& options);

}  // namespace sdtune::train
