// Texts inside PNG files, as write_png puts them there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sdtune::model {

// The value, in UTF-8, of the first tEXt chunk or uncompressed iTXt chunk with this key before the pixels; nothing when
// there is none, or the bytes are no PNG. Reads the structure alone: never throws for damaged files, which read_image
// refuses.
std::optional<std::string> find_png_text(std::string_view bytes, std::string_view key);

// Whether sdtune rendered or generated the image of this file: a PNG whose text `Software` begins with "sdtune". Other
// programs may drop texts when they save an image again; such a copy counts as any other photo.
bool is_made_by_sdtune(std::string_view bytes);

}  // namespace sdtune::model
