// The flags that kohya's sd-scripts understand behind a prompt of a prompt file:
//   a photo of a cat --n blurry --w 512 --h 768 --d 7 --l 6.5 --s 25 --ss euler_a
#pragma once

#include <string>

#include "model/generate/generate_options.h"

namespace sdtune::model {

// `options` for one line: its prompt without flags, and what they say: n negative prompt, w width, h height, d seed,
// l guidance scale, s steps, ss (or ds) sampler. A flag is " --" with its name. Throws ConfigError naming `where` for a
// flag that is not known, and for a value as --width and the others do.
GenerateOptions options_of_line(const GenerateOptions& options, const std::string& text, const std::string& where);

}  // namespace sdtune::model
