// The mark that says that a program generated the image: IPTC's digital source type, as XMP metadata.
#pragma once

#include "model/image/png_write.h"

namespace sdtune::model {

// An iTXt chunk with an XMP packet (ISO 16684-1) whose Iptc4xmpExt:DigitalSourceType is trainedAlgorithmicMedia (IPTC
// Photo Metadata Standard 2023.1), which image libraries and search engines show as "made with AI".
PngText ai_generated_mark();

}  // namespace sdtune::model
