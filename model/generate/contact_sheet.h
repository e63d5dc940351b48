// A contact sheet, one image of many: photos above, then another model's images, then this model's, of the same
// prompts and seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/image.h"

namespace sdtune::model {

struct SheetRow {
  std::vector<Image> images;
  std::vector<std::string> captions;  // one an image
};

// What a sheet will hold: so many images of this size, or of this size at most.
struct SheetPlan {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;   // px, of an image
  std::int64_t height = 0;  // px
};

// Before anything is generated for it. Throws ConfigError naming `where` for a sheet of more than 16384 px a side,
// which many viewers do not open.
void check_sheet(const SheetPlan& plan, const std::string& where);

// Rows from the top, filled up with white to the widest. Images below 192 px are enlarged by a whole number, so that
// a sheet of small ones can be seen; larger ones stay. `photos`, which may be empty, become the first row: whole, and
// as large as fits the largest of the others. Throws DataError when there is nothing to show.
Image make_sheet(const std::vector<Image>& photos, std::vector<SheetRow> rows);

}  // namespace sdtune::model
