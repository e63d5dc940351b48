// JPEG pixels, strictly. OpenCV's decoder fills what is missing from a cut file with grey and reports success, so JPEG
// goes through libjpeg itself with every warning an error.
#pragma once

#include <string>
#include <string_view>

#include "model/base/image.h"

namespace sdtune::model {

// The stored pixels, before the EXIF turn. Grey is repeated over the channels; CMYK and YCCK are taken as Adobe writes
// them (inverted) and turned to RGB as Pillow does, without a colour profile. Zeros between segments or before the end
// mark are padding. Throws DataError naming `where` with libjpeg's reason for a truncated or damaged file.
// `reduction` 2, 4 or 8 divides both sides (rounded up) by scaled cosine transforms: every coefficient is read all the
// same, so the same files are refused, in less time.
Image decode_jpeg(std::string_view bytes, const std::string& where, unsigned reduction = 1);

}  // namespace sdtune::model
