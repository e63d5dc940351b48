// The one picture that shows all others: photos above, then another model's pictures, then this model's, of the same
// prompts and seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/image.h"

namespace sdtune::app {

struct SheetRow {
  std::vector<Image> pictures;
  std::vector<std::string> captions;  // one a picture
};

// What a sheet will hold: so many pictures of this size, or of this size at most.
struct SheetPlan {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;   // px, of a picture
  std::int64_t height = 0;  // px
};

// Before anything is drawn for it. Throws ConfigError naming --grid for a sheet of more than 16384 px a side, which
// many viewers do not open.
void check_sheet(const SheetPlan& plan);

// Rows from the top, filled up with white to the widest. Pictures below 192 px are enlarged by a whole number, so that
// a sheet of small ones can be seen; larger ones stay. `photos`, which may be empty, become the first row: whole, and
// as large as fits the largest of the others. Throws DataError when there is nothing to show.
Image make_sheet(const std::vector<Image>& photos, std::vector<SheetRow> rows);

}  // namespace sdtune::app
