// The photo report of `doctor --json` and `prepare --json`.
#pragma once

#include "model/base/json.h"
#include "train/preflight/photo_report.h"

namespace sdtune::app {

// {"photos": [{"file", "width", "height", "orientation", "caption", "repeats", "sharpness", "faces_searched", "faces":
// [[left, top, width, height], ...]}, ...], "problems", "warnings", "left_out": [{"where", "what", "hint"}, ...],
// "notes": [...]}; px as seen, after the EXIF turn. The last three keys of a photo only where it was examined.
Json photo_report_json(const train::PhotoReport& report);

}  // namespace sdtune::app
