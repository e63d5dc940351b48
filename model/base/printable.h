// Text from files, made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sdtune {

// `text` with every control character written out: C0, DEL and C1 (which is where a terminal's commands begin) as
// \xNN, one for each of its bytes. Everything else stays as it is, UTF-8 letters among it.
std::string printable(std::string_view text);

}  // namespace sdtune
