#include "model/files/json_file.h"

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune {

Json read_json(const std::filesystem::path& path) {
  try {
    return parse_json(read_file(path, std::size_t{256} << 20), path.string());
  } catch (const DataError& error) {  // of read_file, which knows nothing of models
    throw WeightError(error.problems());
  }
}

}  // namespace sdtune
