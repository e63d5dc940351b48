// The header of a JPEG file (ITU-T T.81, annex B): its size, and where its EXIF block is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::model {

struct JpegHeader {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  std::string_view exif;    // the TIFF block of the APP1 segment; empty when there is none
};

// Reads the segments up to the image data. `bytes` begins with the JPEG mark. Throws DataError naming `where` when
// the file ends inside its header or holds no frame.
JpegHeader read_jpeg_header(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
