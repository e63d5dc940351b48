// Base64 (RFC 4648) for the hub's requests.
#pragma once

#include <string>
#include <string_view>

namespace sdtune::app {

std::string base64(std::string_view bytes);

}  // namespace sdtune::app
