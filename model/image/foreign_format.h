// Names the files that people put into a photo folder and that we do not read.
#pragma once

#include <string>
#include <string_view>

namespace sdtune::model {

struct ForeignFormat {
  std::string name;  // "a HEIC image", ...; empty when the bytes are of no known kind
  std::string hint;  // what to do about it
};

// Classifiers by the first bytes of a file that is not JPEG, PNG or WebP.
ForeignFormat name_foreign_format(std::string_view bytes);

}  // namespace sdtune::model
