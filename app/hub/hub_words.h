// How commands of the hub say things.
#pragma once

#include <cstdint>
#include <string>

namespace sdtune::app {

// "3.4 GB", "812 bytes": powers of ten, as hubs show them.
std::string size_text(std::uint64_t bytes);

}  // namespace sdtune::app
