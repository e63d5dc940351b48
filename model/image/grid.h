// Several images side by side: contact sheets and validation grids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/image.h"

namespace sdtune::model {

struct GridLayout {
  std::int64_t columns = 0;  // 0: as square as possible
  std::int64_t gap = 4;      // px, white, between the cells and around them
  // Under each image, in up to three lines; none, or one an image; what is not ASCII shows as '?'.
  std::vector<std::string> captions = {};
};

// Row by row from the top left. Each cell has the size of the largest image; smaller ones are centred in theirs.
// Throws DataError for no images, an empty one, or captions that are not as many as the images.
Image make_grid(const std::vector<Image>& images, const GridLayout& layout = {});

}  // namespace sdtune::model
